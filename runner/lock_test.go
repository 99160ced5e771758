package runner

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
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
	before, err := journal.Open(journal.Options{Dir: p.state, RunUID: p.task.Run.UID, Attempt: 1, Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	log := fakeLogHandler{Handler: slog.DiscardHandler, first: make(chan string, 1)}
	p.task.Attempt, p.log = 2, slog.New(log)
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
