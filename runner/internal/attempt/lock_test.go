package attempt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A fakeLogHandler is a log that passes on what it is told first.
type fakeLogHandler struct {
	slog.Handler
	first chan string
}

func (fakeLogHandler) Enabled(context.Context, slog.Level) bool { return true }

func (t fakeLogHandler) Handle(_ context.Context, r slog.Record) error {
	select {
	case t.first <- r.Message:
	default:
	}
	return nil
}

// A pod that was deleted by force is gone for the cluster before its runner is:
// the next one does nothing until then.
func TestARunnerWaitsForTheOneBeforeItToBeGone(t *testing.T) {
	p := newTestPod(t, modeltest.Turn{Text: "Done."})
	before, err := journal.Open(journal.Options{Dir: p.State, RunUID: p.task.Run.UID, Attempt: 1, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	log := fakeLogHandler{Handler: slog.DiscardHandler, first: make(chan string, 1)}
	p.task.Attempt, p.Log = 2, slog.New(log)
	ended := make(chan int, 1)
	go func() { ended <- p.run() }()
	if got := <-log.first; got != "Waiting for the runner of an earlier attempt to end" {
		t.Errorf("the log says %q", got)
	}
	if got := p.model.Requests(); len(got) != 0 {
		t.Errorf("meanwhile the model was asked %d times", len(got))
	}
	if err := before.Close(); err != nil {
		t.Fatal(err)
	}
	if code := <-ended; code != task.ExitCommitted {
		t.Errorf("exit code %d, want %d", code, task.ExitCommitted)
	}
}

// Outside a pod an attempt waits for no other to end: the user decides.
func TestOutsideAPodADirectoryInUseIsRefusedAtOnce(t *testing.T) {
	const program = "Another Run still uses the directory of Agent.State: wait for its end, or set Agent.State to another directory (another runner is using the state directory %s"
	cases := map[string]struct {
		place place.Place
		lock  string
		want  string // with the directory
	}{
		"another program":                {place.Program, "4711 web-1\n", program + ": process 4711 on host web-1)"},
		"the same number in another pod": {place.Program, fmt.Sprintf("%d web-1\n", os.Getpid()), program + fmt.Sprintf(": process %d on host web-1)", os.Getpid())},
		"a process of an older program":  {place.Program, "4711\n", program + ": process 4711)"},
		"a process without number":       {place.Program, "", program + ")"},
		"run --local":                    {place.Local, "4711 mine\n", "Another run of this machine still uses the state directory: wait for its end, or use another directory (another runner is using the state directory %s: process 4711 on host mine)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				lockElsewhere(t, dir, tc.lock)
				a := newAttempt(Environment{Place: tc.place, State: dir, Log: slog.New(slog.DiscardHandler), Now: time.Now})
				err := a.takeOver(t.Context())
				end, ok := errors.AsType[*task.EndError](err)
				if want := fmt.Sprintf(tc.want, dir); !ok || end.Reason != task.ReasonRunnerFailed || end.Message != want {
					t.Errorf("got %v\nwant %s", err, want)
				}
				if waited := time.Since(a.began); waited != 0 {
					t.Errorf("it was refused after %s", waited)
				}
			})
		})
	}
}

// lockElsewhere locks a directory as another process does that leaves a text.
func lockElsewhere(t *testing.T, dir, text string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	if _, err := f.WriteString(text); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}
