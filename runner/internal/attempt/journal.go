package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/mirror"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// lockFor is how long a runner waits until the runner of an earlier attempt has ended. If a pod was deleted by
	// force, its runner may still use its grace period although the pod no longer exists in the cluster.
	lockFor  = 2 * time.Minute
	lockPoll = 250 * time.Millisecond
)

// takeOver opens the journal, before any other file that the runner of an earlier attempt may still use. In a pod it
// waits for that runner to end; elsewhere another process may hold the journal for long, so it returns an error.
func (a *attempt) takeOver(ctx context.Context) error {
	ctx, cancel := untilInterrupted(ctx, &a.latest)
	defer cancel()
	given := time.NewTimer(lockFor)
	defer given.Stop()
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for waited := false; ; waited = true {
		err := a.open()
		if _, isLocked := errors.AsType[*journal.LockedError](err); !isLocked || a.Place != place.Pod {
			return a.journalEnd(err)
		}
		if !waited {
			a.Log.Info("Waiting for the runner of an earlier attempt to end", "state", a.State)
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
	models, err := hashesOfModels(a.snapshot)
	if err != nil {
		return err
	}
	dir, err := journal.Open(journal.Options{
		Dir: a.State, RunUID: a.task.Run.UID, Attempt: a.task.Attempt, Durable: a.task.Durable,
		Now: a.Now, LowSpace: func() { a.lowSpace.Store(true) }, PID: a.pid(), Models: models, Continue: continued(a.task.Continue),
	})
	if err != nil {
		return err
	}
	a.journal = dir
	if a.task.Continue == nil {
		return nil
	}
	return config.TakeFiles(a.State)
}

// continued returns the session that a Run continues, as the journal names it.
func continued(c *task.Continue) *journal.Continued {
	if c == nil {
		return nil
	}
	return &journal.Continued{Run: c.Run, RunUID: c.RunUID, Step: c.Step}
}

// hashesOfModels returns the hashes of the definitions of the Models of a snapshot, by name.
func hashesOfModels(s task.Snapshot) (map[string]string, error) {
	out := map[string]string{}
	for _, m := range s.Models {
		definition, err := json.Marshal(m)
		if err != nil {
			return nil, fmt.Errorf("encoding the Model %s: %w", m.Name, err)
		}
		out[m.Name] = task.Hash(definition)
	}
	return out, nil
}

// pid returns the process of this attempt; 0: it is in a pod, where other pods have the same numbers.
func (e Environment) pid() int {
	if e.Place == place.Pod {
		return 0
	}
	return os.Getpid()
}

// journalEnd turns an error of opening the journal into the end of the attempt, with advice that depends on the place.
func (e Environment) journalEnd(err error) error {
	var (
		locked     *journal.LockedError
		foreign    *journal.ForeignError
		superseded *journal.SupersededError
		full       *journal.FullError
		corrupt    *journal.CorruptError
		missing    *journal.NotContinuedError
	)
	switch {
	case errors.As(err, &missing):
		return nothingToContinue(err)
	case errors.As(err, &locked):
		return task.End(task.ReasonRunnerFailed, "%s (%w%s)", lockedAdvice[e.Place], err, holder(locked))
	case errors.As(err, &corrupt):
		return fmt.Errorf("%w; the session cannot be resumed: %s", err, corruptAdvice[e.Place])
	case errors.As(err, &foreign) && e.Place == place.Program:
		return task.End(task.ReasonMisconfigured, "The directory %s has the journal of another prompt or agent. Set Agent.State to another directory", e.State)
	case errors.As(err, &superseded):
		return task.End(task.ReasonFenced, "%w", err)
	case errors.As(err, &full):
		return task.End(task.ReasonStorageFull, "%w", err)
	}
	return err
}

// nothingToContinue ends an attempt before it has done anything.
func nothingToContinue(err error) *task.EndError {
	return task.End(task.ReasonNothingToContinue, "Nothing was done, because %w. To begin from the start, create a Run with the whole prompt", err)
}

// holder names the process that holds a journal.
func holder(l *journal.LockedError) string {
	switch {
	case l.Own:
		return ": this process"
	case l.PID == 0:
		return ""
	case l.Host == "":
		return fmt.Sprintf(": process %d", l.PID)
	}
	return fmt.Sprintf(": process %d on host %s", l.PID, l.Host)
}

// What to do about a journal that another runner has locked, and about a damaged one.
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

// A mirroredJournal is a journal whose steps are also copied to a store of sessions, in the background. Only the
// journal is authoritative; if the store is unavailable, only the copy is lost.
type mirroredJournal struct {
	*journal.Dir
	feed *mirror.Feed // nil: there is no store

	mu     sync.Mutex
	status string
	early  map[string]map[int64]step.Step // results that came before an earlier one's, by session
	next   map[string]int64
}

// sessionRow returns the row of the Run's own session in a store.
func sessionRow(t task.Task, agent string) session.Row {
	return session.Row{ID: t.Run.UID, App: t.Run.Namespace, Agent: agent, User: t.User, Status: "Running"}
}

// newMirroredJournal starts to copy the steps that a journal records.
func newMirroredJournal(dir *journal.Dir, store session.Store, row session.Row) *mirroredJournal {
	j := &mirroredJournal{Dir: dir, early: map[string]map[int64]step.Step{}, next: map[string]int64{}}
	if store == nil {
		return j
	}
	j.feed = mirror.NewFeed(mirror.FeedOptions{Store: store, Row: row, Source: func(name string, from int64) iter.Seq2[step.Step, error] {
		return journal.Steps(dir.Read(), name, from)
	}})
	return j
}

// Append implements [journal.Log].
func (j *mirroredJournal) Append(r journal.Record) error {
	err := j.Dir.Append(r)
	if err == nil && j.feed != nil && r.Step != nil {
		j.copy(r.Session, *r.Step)
	}
	return err
}

// copy copies a step, and the steps before it that waited for it.
func (j *mirroredJournal) copy(name string, s step.Step) {
	j.mu.Lock()
	defer j.mu.Unlock()
	next, known := j.next[name]
	if !known {
		next = s.Seq // of a turn that an earlier attempt began: the journal has what is missing
		j.next[name], j.early[name] = next, map[int64]step.Step{}
	}
	early := j.early[name]
	early[s.Seq] = s
	for s, ok := early[next]; ok; s, ok = early[next] {
		delete(early, next)
		next++
		j.feed.Add(name, s)
	}
	j.next[name] = next
}

// setStatus sets the status of the Run in the store.
func (j *mirroredJournal) setStatus(reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status = reason
}

// close waits until the store has the remaining steps and the status of the Run. Steps that it does not accept are
// logged: an unavailable store is not a failure of the Run.
func (j *mirroredJournal) close(timeout time.Duration, log *slog.Logger) {
	if j == nil || j.feed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	if s := j.feed.Close(ctx, j.status); s.Missing > 0 || s.Err != nil {
		log.Warn("The store of sessions did not take everything", "stored", s.Stored, "missing", s.Missing, "failures", s.Failures, "error", s.Err)
	}
}
