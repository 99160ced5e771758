package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// lockFor is how long a runner waits for the one before it to be gone. A pod
	// that was deleted by force is no more for the cluster, while its runner has its
	// grace to end in.
	lockFor  = 2 * time.Minute
	lockPoll = 250 * time.Millisecond
)

// takeOver opens the journal, before anything else that an earlier runner may
// still use.
func (w *work) takeOver(ctx context.Context) error {
	ctx, cancel := untilInterrupted(ctx, &w.told)
	defer cancel()
	given := time.NewTimer(lockFor)
	defer given.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for waited := false; ; waited = true {
		err := w.open()
		if _, held := errors.AsType[*journal.LockedError](err); !held {
			return journalEnd(err)
		}
		if !waited {
			w.log.Info("Waiting for the runner of an earlier attempt to end", "state", w.state)
		}
		select {
		case <-poll.C:
		case <-given.C:
			return task.End(task.ReasonRunnerFailed, "The runner of an earlier attempt does not end, and still holds the files of the Run: look at its pod and its cluster node (%w)", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (w *work) open() error {
	dir, err := journal.Open(journal.Options{
		Dir: w.state, RunUID: w.task.Run.UID, Attempt: w.task.Attempt, Durable: w.task.Durable,
		Now: w.now, LowSpace: func() { w.lowSpace.Store(true) },
	})
	if err == nil {
		w.journal = dir
	}
	return err
}

// journalEnd gives a refusal of the journal its reason.
func journalEnd(err error) error {
	var superseded *journal.SupersededError
	var full *journal.FullError
	var corrupt *journal.CorruptError
	switch {
	case errors.As(err, &corrupt):
		return fmt.Errorf("%w; the session cannot be resumed: save the files of its PersistentVolumeClaim, and create another Run", err)
	case errors.As(err, &superseded):
		return task.End(task.ReasonFenced, "%w", err)
	case errors.As(err, &full):
		return task.End(task.ReasonStorageFull, "%w", err)
	}
	return err
}

// tell begins to tell what happens, to all who want to know.
func (w *work) tell() {
	w.events = events.New(events.Options{
		Out: w.stdout, Run: w.task.Run.Name, Attempt: w.task.Attempt,
		After: events.First(w.task.Attempt, w.journal.Restarts()),
		Mode:  events.Mode(w.snapshot.Agent.Events), Redact: w.redact, Now: w.now,
	})
	w.audience = listen(w.events.Feed, w.registry.Listeners())
}
