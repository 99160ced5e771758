package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
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
func (a *attempt) takeOver(ctx context.Context) error {
	ctx, cancel := untilInterrupted(ctx, &a.latest)
	defer cancel()
	given := time.NewTimer(lockFor)
	defer given.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for waited := false; ; waited = true {
		err := a.open()
		if _, isLocked := errors.AsType[*journal.LockedError](err); !isLocked {
			return a.journalEnd(err)
		}
		if !waited {
			a.log.Info("Waiting for the runner of an earlier attempt to end", "state", a.state)
		}
		select {
		case <-poll.C:
		case <-given.C:
			return a.journalEnd(err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (a *attempt) open() error {
	dir, err := journal.Open(journal.Options{
		Dir: a.state, RunUID: a.task.Run.UID, Attempt: a.task.Attempt, Durable: a.task.Durable,
		Now: a.now, LowSpace: func() { a.lowSpace.Store(true) },
	})
	if err == nil {
		a.journal = dir
	}
	return err
}

// journalEnd gives a refusal of the journal its reason, and says what to do where the attempt
// is made.
func (a *attempt) journalEnd(err error) error {
	var (
		locked     *journal.LockedError
		foreign    *journal.ForeignError
		superseded *journal.SupersededError
		full       *journal.FullError
		corrupt    *journal.CorruptError
	)
	switch {
	case errors.As(err, &locked):
		return task.End(task.ReasonRunnerFailed, "%s (%w)", lockedAdvice[a.place], err)
	case errors.As(err, &corrupt):
		return fmt.Errorf("%w; the session cannot be resumed: %s", err, corruptAdvice[a.place])
	case errors.As(err, &foreign) && a.place == place.Program:
		return task.End(task.ReasonMisconfigured, "The directory %s has the journal of another prompt or agent. Set Agent.State to another directory", a.state)
	case errors.As(err, &superseded):
		return task.End(task.ReasonFenced, "%w", err)
	case errors.As(err, &full):
		return task.End(task.ReasonStorageFull, "%w", err)
	}
	return err
}

// What to do about a journal that another runner holds, and about one that is damaged.
var (
	lockedAdvice = map[place.Place]string{
		place.Pod:     "The runner of an earlier attempt does not end, and still holds the files of the Run: look at its pod and its cluster node",
		place.Local:   "Another run of this machine still uses the state directory: wait for its end, or use another directory",
		place.Program: "Another Run still uses the directory of Agent.State: wait for its end, or set Agent.State to another directory",
	}
	corruptAdvice = map[place.Place]string{
		place.Pod:     "save the files of its PersistentVolumeClaim, and create another Run",
		place.Local:   "save what you need of the state directory, and use another one",
		place.Program: "save what you need of the directory of Agent.State, and set Agent.State to another one",
	}
)

// openEvents begins to tell what happens, to all who want to know.
func (a *attempt) openEvents() {
	o := eventlog.Options{
		Out: a.stdout, Run: a.task.Run.Name, Attempt: a.task.Attempt,
		After: eventlog.First(a.task.Attempt, a.journal.Restarts()),
		Mode:  eventlog.Mode(a.snapshot.Agent.Events), Redact: a.redact, Now: a.now,
	}
	a.events = eventlog.New(o)
	if a.subscribe != nil {
		a.subscribe(a.events.Feed)
	}
	if o.Feed = a.events.Feed; a.task.Durable && !a.byHand && o.Mode != eventlog.None {
		var err error
		if a.stored, err = storeEvents(a.state, o); err != nil {
			a.log.Warn("The events are not stored on the volume", "error", err)
		}
	}
	a.listeners = startListeners(a.events.Feed, a.registry.Listeners())
	a.tracer = telemetry.Start(a.events.Feed, telemetry.Options{
		Task: a.task, Snapshot: a.snapshot, Redact: a.redact,
		Warn: func(err error) { a.log.Warn("Spans are dropped", "error", a.redact.String(err.Error())) },
	})
}
