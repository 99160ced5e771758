package runner

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// copies are a journal whose steps are also brought to a store of sessions, in
// the background and behind the journal. The journal alone decides; a store that
// is down costs nothing but the copy.
type copies struct {
	*journal.Dir
	feed *session.Feed // nil: there is no store

	mu     sync.Mutex
	status string
	early  map[string]map[int64]step.Step // results that came before an earlier one's, by session
	next   map[string]int64
}

// sessionRow is the Run's own session as a store keeps it.
func sessionRow(t task.Task, agent string) session.Row {
	return session.Row{ID: t.Run.UID, App: t.Run.Namespace, Agent: agent, User: t.User, Status: "Running"}
}

// copying begins to copy what a journal records.
func copying(dir *journal.Dir, store session.Store, row session.Row) *copies {
	c := &copies{Dir: dir, early: map[string]map[int64]step.Step{}, next: map[string]int64{}}
	if store == nil {
		return c
	}
	c.feed = session.NewFeed(session.FeedOptions{Store: store, Row: row, Source: func(name string, from int64) iter.Seq2[step.Step, error] {
		return journal.Steps(dir.Read(), name, from)
	}})
	return c
}

// Append implements [journal.Log].
func (c *copies) Append(r journal.Record) error {
	err := c.Dir.Append(r)
	if err == nil && c.feed != nil && r.Step != nil {
		c.copy(r.Session, *r.Step)
	}
	return err
}

// copy brings a step to the store, and with it those that waited for it.
func (c *copies) copy(name string, s step.Step) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next, known := c.next[name]
	if !known {
		next = s.Seq // of a turn that an earlier attempt began: the journal has what is missing
		c.next[name], c.early[name] = next, map[int64]step.Step{}
	}
	early := c.early[name]
	early[s.Seq] = s
	for s, ok := early[next]; ok; s, ok = early[next] {
		delete(early, next)
		next++
		c.feed.Add(name, s)
	}
	c.next[name] = next
}

// ended says how the Run stands.
func (c *copies) ended(reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.status = reason
}

// close has the store take what is left, and how the Run stands. What it did
// not take is said in the log: a store that is down is no failure of the Run.
func (c *copies) close(patience time.Duration, log *slog.Logger) {
	if c == nil || c.feed == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if s := c.feed.Close(ctx, c.status); s.Missing > 0 || s.Err != nil {
		log.Warn("The store of sessions did not take everything", "stored", s.Stored, "missing", s.Missing, "failures", s.Failures, "error", s.Err)
	}
}
