package attempt

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What is away may come back; what is refused stays so.
func TestPersist(t *testing.T) {
	away, refused := errors.New("connection refused"), &workspace.RefusedError{Message: "no such branch"}
	for name, tc := range map[string]struct {
		answers []error // the last again and again
		want    error
		tries   int
	}{
		"it works at once":         {[]error{nil}, nil, 1},
		"it works the third time":  {[]error{away, away, nil}, nil, 3},
		"it is refused":            {[]error{away, refused}, refused, 2},
		"it stays away for 19 s":   {[]error{away}, away, 10},
		"it is refused right away": {[]error{refused}, refused, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait, cancel := context.WithTimeout(t.Context(), 19*time.Second)
				defer cancel()
				tries := 0
				err := retry(wait, 2*time.Second, func() error {
					tries++
					return tc.answers[min(tries, len(tc.answers))-1]
				})
				if err != tc.want || tries != tc.tries { //nolint:errorlint // it is handed through
					t.Errorf("%v after %d tries, want %v after %d", err, tries, tc.want, tc.tries)
				}
			})
		})
	}
}

// A repository that cannot be reached is tried for a minute, in each attempt anew; the pod
// then ends, so that the next attempt comes with backoff.
func TestARepositoryThatCannotBeReachedIsTriedForAMinute(t *testing.T) {
	p := newTestPod(t)
	p.snapshot.Workspace.Git = &task.Git{URL: "http://127.0.0.1:1/x.git"} // no server listens there
	for attempt := range 2 {
		synctest.Test(t, func(t *testing.T) {
			var log bytes.Buffer
			env := p.Environment
			env.Log = slog.New(slog.NewTextHandler(&log, nil))
			began := time.Now()
			_, err := env.prepare(t.Context())
			took, tries := time.Since(began), strings.Count(log.String(), "Preparing the workspace failed")
			if took < 55*time.Second || took > 65*time.Second || tries < 20 || tries > 60 {
				t.Errorf("attempt %d: tried %d times in %s", attempt+1, tries, took)
			}
			if end := endOf(err); end.Reason != task.ReasonToolUnavailable || !strings.Contains(end.Message, "127.0.0.1:1") {
				t.Errorf("attempt %d ends %s: %s", attempt+1, end.Reason, end.Message)
			}
		})
	}
}

// Runs that share a workspace keep what they know of it where all of them see it.
func TestFetchOfASharedWorkspace(t *testing.T) {
	origin := t.TempDir()
	for _, run := range []string{"first", "later"} {
		p := newTestPod(t)
		p.origin = origin
		if code := Fetch(p.Environment); code != task.ExitCommitted {
			t.Fatalf("%s: exit code %d: %+v", run, code, p.termination(t))
		}
		if _, err := os.Stat(filepath.Join(p.State, "workspace", "joined.json")); err != nil {
			t.Errorf("%s: its state does not say that it has begun: %v", run, err)
		}
	}
	if _, err := os.Stat(filepath.Join(origin, "workspace", "fetch.lock")); err != nil {
		t.Errorf("nothing is where all see it: %v", err)
	}
}

// A repository that is larger than the workspace is refused, and not tried again.
func TestARepositoryThatDoesNotFit(t *testing.T) {
	p := newTestPod(t)
	p.snapshot.Workspace.Git = &task.Git{URL: newGitServerWithLFS(t)}
	p.size = workspaceSize("4096")
	if code := Fetch(p.Environment); code != task.ExitCode(task.ReasonMisconfigured) {
		t.Errorf("exit code %d", code)
	}
	if got := p.termination(t).Result; got.Reason != task.ReasonMisconfigured || !strings.Contains(got.Message, "does not fit into the workspace") {
		t.Errorf("%+v", got)
	}
	p.size = workspaceSize("") // as from an operator that does not name it
	if code := Fetch(p.Environment); code != task.ExitCommitted {
		t.Errorf("without a bound: exit code %d: %+v", code, p.termination(t))
	}
}

// What many share is there only where the operator mounts it.
func TestMounted(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "file"), "")
	for at, want := range map[string]string{dir: dir, filepath.Join(dir, "file"): "", filepath.Join(dir, "none"): ""} {
		if got := mounted(at); got != want {
			t.Errorf("mounted(%s) = %q, want %q", at, got, want)
		}
	}
}
