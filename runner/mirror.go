package runner

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/mirror"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A mirroredJournal is a journal whose steps are also copied to a store of sessions, in
// the background and after the journal. Only the journal decides; a store that is down
// costs nothing but the copy.
type mirroredJournal struct {
	*journal.Dir
	feed *mirror.Feed // nil: there is no store

	mu     sync.Mutex
	status string
	early  map[string]map[int64]step.Step // results that came before an earlier one's, by session
	next   map[string]int64
}

// sessionRow is the Run's own session as a store keeps it.
func sessionRow(t task.Task, agent string) session.Row {
	return session.Row{ID: t.Run.UID, App: t.Run.Namespace, Agent: agent, User: t.User, Status: "Running"}
}

// newMirroredJournal begins to copy what a journal records.
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

// copy brings a step to the store, and with it those that waited for it.
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

// setStatus says how the Run stands.
func (j *mirroredJournal) setStatus(reason string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.status = reason
}

// close has the store take what is left, and how the Run stands. What it did
// not take is said in the log: a store that is down is no failure of the Run.
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
