package attempt

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Publishing does not delay the stop or the pause of a Run.
func TestPublishingEndsOnStopAndPause(t *testing.T) {
	cases := map[string]struct {
		durable bool
		said    string
		ends    bool
	}{
		"a stop":                            {false, `{"stop":true}`, true},
		"a pause":                           {true, `{"pause":true}`, true},
		"a pause that nothing goes on from": {false, `{"pause":true}`, false},
		"anything else":                     {true, `{"at":5}`, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := &attempt{task: task.Task{Durable: tc.durable}}
				wait, end := signals.Context(t.Context(), &w.latest, w.publisher().endsRetries, nil)
				defer end()
				synctest.Wait()
				newTestReader(&w.latest).apply([]byte(tc.said))
				synctest.Wait()
				if ended := wait.Err() != nil; ended != tc.ends {
					t.Errorf("it ended: %t", ended)
				}
			})
		})
	}
}

// newGitServerWithLFS returns the URL of a repository with a pointer of Git LFS.
func newGitServerWithLFS(t *testing.T) string {
	t.Helper()
	base := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + base}
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir, cmd.Env = base, env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	git("init", "-q", "--bare", "-b", "main", "repo.git")
	git("-C", "repo.git", "config", "http.receivepack", "true")
	git("clone", "-q", "repo.git", "work")
	for name, text := range map[string]string{
		".gitattributes": "*.png filter=lfs diff=lfs merge=lfs -text\n",
		"logo.png":       "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
	} {
		if err := os.WriteFile(filepath.Join(base, "work", name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("-C", "work", "add", "-A")
	git("-C", "work", "-c", "user.name=Ann", "-c", "user.email=ann@acme.com", "commit", "-q", "-m", "seed")
	git("-C", "work", "push", "-q", "origin", "HEAD:refs/heads/main")
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	backend := &cgi.Handler{Path: program, Args: []string{"http-backend"}, Dir: base, Env: append(env, "GIT_PROJECT_ROOT="+base, "GIT_HTTP_EXPORT_ALL=1")}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // CGI needs the length of the body
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/repo.git"
}

// newGitServerWithHangingPush returns the URL of a repository whose server does not answer a
// push, and a channel that is closed when a push waits for it.
func newGitServerWithHangingPush(t *testing.T) (url string, hangs <-chan struct{}) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	env := []string{"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "HOME=" + base}
	for _, args := range [][]string{
		{"init", "-q", "--bare", "-b", "main", "repo.git"},
		{"clone", "-q", "repo.git", "work"},
		{"-C", "work", "-c", "user.name=Ann", "-c", "user.email=ann@acme.com", "commit", "-q", "--allow-empty", "-m", "seed"},
		{"-C", "work", "push", "-q", "origin", "HEAD:refs/heads/main"},
	} {
		cmd := exec.CommandContext(t.Context(), git, args...)
		cmd.Dir, cmd.Env = base, append(os.Environ(), env...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	backend := &cgi.Handler{Path: git, Args: []string{"http-backend"}, Dir: base, Env: append(env, "GIT_PROJECT_ROOT="+base, "GIT_HTTP_EXPORT_ALL=1")}
	reached := make(chan struct{})
	hang := sync.OnceFunc(func() { close(reached) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("service") == "git-receive-pack" {
			hang()
			<-r.Context().Done()
			return
		}
		body, _ := io.ReadAll(r.Body) // CGI needs the length of the body
		r.Body, r.ContentLength, r.TransferEncoding = io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL + "/repo.git", reached
}

func TestChangedFilesOfGitLFSAreNamedInTheWarning(t *testing.T) {
	const endpoint = "Every call of toolset x failed (3 of 3): refused. Check spec.http.url of Toolset x."
	cases := map[string]struct{ left, warning, want string }{
		"none":               {"", "", ""},
		"none, and another":  {"", endpoint, endpoint},
		"one":                {"new.png", "", "Not in the commit, because files of Git LFS cannot be published: new.png. Push them yourself."},
		"some, and another":  {"a.png, b.png", endpoint, "Not in the commit, because files of Git LFS cannot be published: a.png, b.png. Push them yourself. " + endpoint},
		"as many as may fit": {strings.Repeat("x", 100) + " and 1000 more", "", "Not in the commit, because files of Git LFS cannot be published: " + strings.Repeat("x", 100) + " and 1000 more. Push them yourself."},
	}
	for name, tc := range cases {
		got := leftOutWarning(tc.left, tc.warning)
		if got != tc.want || tc.warning == "" && len(got) > task.MaxWarning {
			t.Errorf("%s: leftOutWarning() = %q (%d bytes), want %q", name, got, len(got), tc.want)
		}
	}
}

// The agent is told what was not fetched, and the result what was not published; work that
// cannot be published at all is no success.
func TestFilesOfGitLFSFromFetchToPublish(t *testing.T) {
	url := newGitServerWithLFS(t)
	base := t.TempDir()
	dir, state := filepath.Join(base, "workspace"), filepath.Join(base, "state")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := workspace.Fetch(t.Context(), workspace.Options{Workspace: dir, State: state, Git: &workspace.Git{URL: url}}); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	a := &attempt{
		Environment: Environment{Workspace: dir, State: state, Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil))},
		task:        task.Task{Run: task.Run{Namespace: "default", Name: "x"}},
		snapshot:    task.Snapshot{Workspace: task.Source{Git: &task.Git{URL: url, Publish: true}}},
		redact:      redact.New(), reporter: noReporter{},
	}
	if missing := a.missing(a.snapshot.Workspace.Git); len(missing) != 1 || !strings.HasSuffix(missing[0], ": logo.png") || !strings.Contains(log.String(), missing[0]) {
		t.Errorf("missing() = %q; the log has\n%s", missing, log.String())
	}
	for i, tc := range []struct{ file, reason, says, warning string }{
		{"new.png", string(task.ReasonPublishFailed), "The work is done, but could not be published: Only files of Git LFS (filter=lfs in .gitattributes) were changed, which cannot be published: new.png. ", ""},
		{"notes.md", string(task.ReasonFinished), "", "Not in the commit, because files of Git LFS cannot be published: new.png. Push them yourself."},
	} {
		if err := os.WriteFile(filepath.Join(dir, tc.file), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		pushed, out := a.publisher().publish(t.Context(), engine.Outcome{Reason: task.ReasonFinished})
		if string(out.Reason) != tc.reason || !strings.HasPrefix(out.Message, tc.says) || out.Warning != tc.warning || (pushed != nil) != (i == 1) {
			t.Errorf("published %+v: %s: %s, warning %q", pushed, out.Reason, out.Message, out.Warning)
		}
	}
}

func TestSignalsEndAPushThatHangs(t *testing.T) {
	cases := map[string]struct {
		signals string
		want    task.Reason
	}{
		"stop":  {`{"stop":true}`, task.ReasonStopped},
		"pause": {`{"pause":true}`, task.ReasonPaused},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			url, hangs := newGitServerWithHangingPush(t)
			base := t.TempDir()
			dir, state := filepath.Join(base, "workspace"), filepath.Join(base, "state")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := workspace.Fetch(t.Context(), workspace.Options{Workspace: dir, State: state, Git: &workspace.Git{URL: url}, Log: func(string) {}}); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "new"), []byte("x"), 0o600); err != nil {
				t.Fatal(err)
			}
			a := &attempt{
				Environment: Environment{Workspace: dir, State: state, Now: time.Now, Log: slog.New(slog.DiscardHandler)},
				task:        task.Task{Durable: true, Run: task.Run{Namespace: "default", Name: "x"}},
				snapshot:    task.Snapshot{Workspace: task.Source{Git: &task.Git{URL: url, Publish: true}}},
				redact:      redact.New(), reporter: noReporter{},
			}
			go func() {
				<-hangs
				newTestReader(&a.latest).apply([]byte(tc.signals))
			}()
			if _, out := a.publisher().publish(t.Context(), engine.Outcome{Reason: task.ReasonFinished}); out.Reason != tc.want {
				t.Errorf("it ends with %s: %s, want %s", out.Reason, out.Message, tc.want)
			}
		})
	}
}

// A lastReporter keeps the progress that was reported last.
type lastReporter struct {
	noReporter
	last task.Progress
}

// Report implements [engine.Reporter].
func (r *lastReporter) Report(now func() task.Progress) { r.last = now() }

// A push that was refused is not retried, so the status does not promise that.
func TestTheProblemOfAPushIsReported(t *testing.T) {
	seen := &lastReporter{}
	a := &attempt{
		Environment: Environment{Now: time.Now, Log: slog.New(slog.DiscardHandler)},
		redact:      redact.New(redact.Secret{Name: "git", Key: "token", Value: []byte("s3cr3t-token")}), reporter: seen,
	}
	a.publisher().show(task.Progress{}, errors.New("https://git.example refuses access (s3cr3t-token)"))
	recent := seen.last.Recent
	if len(recent) != 1 || recent[0].Summary != "Failed: https://git.example refuses access (‹secret:git/token›)" {
		t.Errorf("reported %+v", recent)
	}
	if seen.last.Step == nil || seen.last.Step.Name != "publish" {
		t.Errorf("the step is %+v", seen.last.Step)
	}
}
