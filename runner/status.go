package runner

import (
	"context"
	"iter"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/mirror"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A statusReporter completes the reports of the engine. If the journal outlives the pod, open requests stay in the
// status when the pod ends: the next attempt repeats them, and users can decide meanwhile.
type statusReporter struct {
	to reporter
	// leaving reports that the pod is ending; nil: the journal is lost with it.
	leaving func() bool
	// refusals has the refused connections of commands; nil: there is no sandbox.
	refusals *refusals

	mu          sync.Mutex
	confinement *task.Confinement // nil: not known yet, or there is no sandbox
	state       string
	asked       []task.Pending
}

// Begin implements [engine.Reporter].
func (r *statusReporter) Begin(ctx context.Context, now func() task.Progress) error {
	return r.to.Begin(ctx, r.complete(now))
}

// Accepted implements [engine.Reporter].
func (r *statusReporter) Accepted() bool { return r.to.Accepted() }

// Report implements [engine.Reporter].
func (r *statusReporter) Report(now func() task.Progress) { r.to.Report(r.complete(now)) }

// Commit implements [engine.Reporter].
func (r *statusReporter) Commit(ctx context.Context, now func() task.Progress) error {
	return r.to.Commit(ctx, r.complete(now))
}

func (r *statusReporter) Close() { r.to.Close() }

// showConfinement adds the confinement of commands to every report.
func (r *statusReporter) showConfinement(c *task.Confinement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confinement = c
}

func (r *statusReporter) complete(now func() task.Progress) func() task.Progress {
	return func() task.Progress {
		p := now()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.confinement != nil {
			p.Confinement = r.confinement
		}
		if r.refusals != nil {
			p.Refused = r.refusals.report()
		}
		switch {
		case r.leaving == nil:
		case !r.leaving():
			r.state, r.asked = p.State, p.Pending
		case p.Result == nil && len(p.Pending) == 0 && len(r.asked) > 0:
			p.State, p.Pending = r.state, r.asked
		}
		return printableProgress(p)
	}
}

// storedEvents are the events of a Run with a volume, stored beside the journal: kubectl deckhand
// logs reads them after the pods were deleted. Deltas are left out, because each step has the whole
// text. Nil: they are not stored.
type storedEvents struct {
	writer *eventlog.Writer
	file   *eventlog.File
}

// storeEvents stores the events of a feed in the state directory.
func storeEvents(state string, o eventlog.Options) (*storedEvents, error) {
	file, err := eventlog.OpenFile(filepath.Join(state, task.EventsFolder))
	if err != nil {
		return nil, err
	}
	o.Out, o.Mode = file, eventlog.Steps
	return &storedEvents{writer: eventlog.New(o), file: file}, nil
}

// close stores queued events, at most as long as timeout. If the disk does not respond, the file stays open until the
// process ends.
func (s *storedEvents) close(timeout time.Duration) {
	if s != nil && s.writer.Close(timeout) {
		_ = s.file.Close() // all is written
	}
}

// listenerQueue is how many events may wait for one listener.
const listenerQueue = 1024

// listeners are the listeners of a custom runner, each with its own queue and goroutine.
type listeners struct {
	subscriptions []*pubsub.Subscription[events.Event]
	all           sync.WaitGroup
}

// startListeners calls functions with each event of a feed. A function that panics is not called again.
func startListeners(feed *eventlog.Feed, functions []registry.Listener) *listeners {
	l := &listeners{}
	for _, tell := range functions {
		subscription := feed.Subscribe(listenerQueue, nil)
		l.subscriptions = append(l.subscriptions, subscription)
		l.all.Go(func() {
			defer subscription.Close()
			defer func() { _ = recover() }()
			for event := range subscription.C() {
				tell(event)
			}
		})
	}
	return l
}

// close waits until the listeners have received what is still queued, at most as long as timeout.
func (l *listeners) close(timeout time.Duration) {
	for _, subscription := range l.subscriptions {
		subscription.Close()
	}
	done := make(chan struct{})
	go func() {
		l.all.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(timeout):
	}
}

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
