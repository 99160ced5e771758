// Package state computes the state of a Run from the records of its journal: every session as it was when the journal
// stopped, and what sessions share. Run.Apply applies one record. The state changes in no other way, so an active
// session equals a session that is read from the journal. A Session has the steps that its model sees; only the journal
// has steps that a compaction hid. A session is dropped when its call has a result, because nothing resumes it. Store
// holds the state of an active Run, with its log and its lock.
package state

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Run is the state of all sessions of a Run when their journal stopped, and what they share.
type Run struct {
	// Agent is the name of the Run's own agent. Steps name only the agents below it.
	Agent string
	// Meter is the usage of the Run.
	Meter step.Meter
	// Delegates reports that a child Run was requested.
	Delegates bool
	// Begun reports that a call with possible effects was begun. The effect classes are those of package tool, where
	// only ReadOnly has no effects.
	Begun bool
	// Restarts is how often the current attempt was restarted in its pod.
	Restarts int
	// Granted is what users granted on top of the limits.
	Granted Grant
	// Decided are the last decisions that the runner acted on, oldest first.
	Decided []journal.Decision

	acted         map[string]bool
	released      map[journal.Source]bool
	remotes       map[string]RemoteCalls
	unclear       []UnclearAnswers
	limitRequests map[string]time.Time // of limits: since when, by request
	sessions      map[string]*Session
	// childRuns is the usage of child Runs in this journal. An older runner did not include it in the Meter.
	childRuns step.Meter
}

// A Grant is what users granted on top of the limits.
type Grant struct {
	Steps, Tokens, CostMicroUSD int64
}

// keepDecided is how many Decisions are shown. Of older ones only the names are kept, so that none is applied twice.
const keepDecided = 20

// readOnly is the effect class of a call that changes nothing.
const readOnly = "ReadOnly"

// Replay computes the state of a Run from its journal.
func Replay(records iter.Seq2[journal.Record, error]) (*Run, error) {
	var run Run
	for rec, err := range records {
		if err != nil {
			return nil, err
		}
		if err := run.Apply(rec); err != nil {
			return nil, err
		}
	}
	return &run, nil
}

// Session returns the session of a call, or the Run's own without a name. A session without records is empty.
func (r *Run) Session(name string) *Session {
	s := r.sessions[name]
	if s == nil {
		s = &Session{}
		if r.sessions == nil {
			r.sessions = map[string]*Session{}
		}
		r.sessions[name] = s
	}
	return s
}

// Acted reports whether the runner acted on the Decision with a name.
func (r *Run) Acted(decision string) bool { return r.acted[decision] }

// OpenBelow returns the sessions below a call that have open calls, deepest first.
func (r *Run) OpenBelow(call string) []string {
	var open []string
	for name, s := range r.sessions {
		if isBelow(name, call) && len(s.Open()) > 0 {
			open = append(open, name)
		}
	}
	slices.SortFunc(open, func(x, y string) int {
		return cmp.Or(cmp.Compare(strings.Count(y, "."), strings.Count(x, ".")), cmp.Compare(x, y))
	})
	return open
}

// isBelow reports whether a session belongs to a call, or is below its session.
func isBelow(session, call string) bool {
	return session == call || strings.HasPrefix(session, call+".")
}

// parent returns the session that a call belongs to: the beginning of its id.
func parent(call string) string {
	return call[:max(strings.LastIndexByte(call, '.'), 0)]
}

// Apply applies one record. The loop applies each record that it appended, so that active sessions and sessions read
// from the journal are equal by construction.
func (r *Run) Apply(rec journal.Record) error {
	if rec.Meter != nil {
		r.Meter = rec.Meter.Max(r.childRuns)
	}
	r.applyAccounts(rec)
	r.countRemotes(rec)
	r.countUnclear(rec.Step)
	if rec.Decision != nil {
		r.applyDecision(rec)
	}
	switch rec.Kind {
	case journal.KindHeader:
		r.Restarts = 0
		if rec.Header != nil && rec.Header.Continues != nil {
			r.handOver(*rec.Header.Continues)
		}
	case journal.KindMark:
		r.applyMark(rec)
	case journal.KindIntent:
		r.applyIntent(rec)
	case journal.KindMeter:
		r.Session(rec.Session).Asked = nil
	case journal.KindHide:
		return r.Session(rec.Session).applyHide(rec)
	case journal.KindResult:
		return r.applyResult(rec)
	case journal.KindStep:
		return r.Session(rec.Session).addStep(rec)
	case journal.KindAsk:
		r.applyRequest(rec)
	case journal.KindChild:
		r.applyChild(rec)
	case journal.KindDecide:
	}
	return nil
}

// applyAccounts takes over the usage of a session and of those above it.
func (r *Run) applyAccounts(rec journal.Record) {
	name := rec.Session
	for _, used := range rec.Accounts {
		r.Session(name).Used = used
		name = parent(name)
	}
}

func (r *Run) applyDecision(rec journal.Record) {
	d := *rec.Decision
	if r.acted == nil {
		r.acted = map[string]bool{}
	}
	r.acted[d.Name] = true
	r.Decided = append(r.Decided, d)
	if extra := len(r.Decided) - keepDecided; extra > 0 {
		r.Decided = append([]journal.Decision(nil), r.Decided[extra:]...)
	}
	if d.Refused != "" {
		return
	}
	r.Granted.Steps = addGranted(r.Granted.Steps, d.Steps)
	r.Granted.Tokens = addGranted(r.Granted.Tokens, d.Tokens)
	r.Granted.CostMicroUSD = addGranted(r.Granted.CostMicroUSD, d.CostMicroUSD)
	if rec.Kind == journal.KindDecide && d.Request != "" {
		r.applyAnswer(rec.Session, d)
	}
}

// addGranted adds a grant. A sum that overflows and a negative grant add nothing.
func addGranted(granted, now int64) int64 { return max(granted, granted+max(now, 0)) }

func (r *Run) applyMark(rec journal.Record) {
	switch {
	case rec.Mark == nil:
	case rec.Mark.Type == journal.MarkRestarted:
		r.Restarts++
	case rec.Mark.Type == journal.MarkEnded:
		s := r.Session(rec.Session)
		s.Ended, s.Nudged, s.Outage = rec.Mark.Text, false, Outage{} // who goes on from an end begins afresh
	case rec.Mark.Type == journal.MarkNotice:
		r.Session(rec.Session).addNotice(rec.Mark.Text)
	case rec.Mark.Type == journal.MarkRoute:
		s := r.Session(rec.Session)
		s.Route, s.RoutedTurn = rec.Mark.Text, s.Turns+1
	case rec.Mark.Type == journal.MarkOutage:
		s := r.Session(rec.Session)
		s.Outage = s.Outage.next(*rec.Mark)
	}
}

func (r *Run) applyIntent(rec journal.Record) {
	if rec.Intent == nil {
		return
	}
	r.Session(rec.Session).applyIntent(rec)
	r.Begun = r.Begun || rec.Intent.CallID != "" && rec.Intent.Effect != readOnly
}

// applyResult adds a result and forgets the sessions below its call, which are never
// resumed.
func (r *Run) applyResult(rec journal.Record) error {
	if rec.Step == nil {
		return fmt.Errorf("replaying the journal: result %d has no step", rec.Seq)
	}
	r.Session(rec.Session).addResult(rec)
	for name := range r.sessions {
		if isBelow(name, rec.Step.CallID) {
			delete(r.sessions, name)
		}
	}
	return nil
}

// A Store is the state of an active Run. One lock covers writing a record to the log and applying it to the state.
type Store struct {
	log journal.Log

	mu  sync.Mutex
	run Run
}

// NewStore returns the empty store of a Run with a log, and with the name of the Run's own agent. Load fills it.
func NewStore(log journal.Log, agent string) *Store {
	return &Store{log: log, run: Run{Agent: agent}}
}

// Load applies the records of the log to the state, and passes each on.
func (s *Store) Load(pass func(journal.Record)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for rec, err := range s.log.Read() {
		if err == nil {
			err = s.run.Apply(rec)
		}
		if err != nil {
			return fmt.Errorf("taking up the session: %w", err)
		}
		pass(rec)
	}
	return nil
}

// Records returns the records of the log, oldest first.
func (s *Store) Records() iter.Seq2[journal.Record, error] { return s.log.Read() }

// Record appends the record that build returns, calls recorded, and applies the record. Meanwhile no other record is
// written, and no state is read.
func (s *Store) Record(build func() journal.Record, recorded func()) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	rec := build()
	if err := s.log.Append(rec); err != nil {
		return err
	}
	recorded()
	return s.run.Apply(rec)
}

// View calls look with the state, which look must not keep.
func (s *Store) View(look func(*Run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(&s.run)
}

// ViewSession calls look with one session, which look must not keep.
func (s *Store) ViewSession(name string, look func(*Session)) {
	s.View(func(r *Run) { look(r.Session(name)) })
}

// Session returns a copy of a session. The steps in it never change; later records only append to them or replace the
// list. Only the goroutine that executes the last turn may use its maps.
func (s *Store) Session(name string) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.run.Session(name)
}

// An Outage is what is known about an unavailable model, over all attempts.
type Outage struct {
	// Since is when the first request failed. Zero: the model is available.
	Since time.Time
	// SilentSince is when the first request failed after which no provider has named a time. Zero: the last provider
	// named one.
	SilentSince time.Time
	// PromisedSince is when the first request failed whose provider named a time.
	PromisedSince time.Time
	// Waits counts the waits.
	Waits int
	// BrokenOff counts the waits after an answer that the provider broke off.
	BrokenOff int
}

// next returns the outage with one more wait.
func (o Outage) next(m journal.Mark) Outage {
	if m.Since.IsZero() {
		return Outage{}
	}
	o.Since = cmp.Or(o.Since, m.Since)
	o.Waits++
	if m.BrokeOff {
		o.BrokenOff++
	}
	if m.Until.IsZero() {
		o.SilentSince = cmp.Or(o.SilentSince, m.Since)
		return o
	}
	o.PromisedSince = cmp.Or(o.PromisedSince, m.Since)
	o.SilentSince = time.Time{}
	return o
}

// RemoteCalls counts the calls of an endpoint. Unreachable is the cause of the last call that failed to reach it.
type RemoteCalls struct {
	journal.Remote
	Made, Failed int64
}

// Remotes returns the calls of all endpoints, sorted by name and field. Hooks of two agents may have the same name.
func (r *Run) Remotes() []RemoteCalls {
	return slices.SortedFunc(maps.Values(r.remotes), func(x, y RemoteCalls) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Field, y.Field))
	})
}

// countRemotes counts the endpoint of a call, and the hooks that were called for a step.
func (r *Run) countRemotes(rec journal.Record) {
	if rec.Remote != nil {
		r.countRemote(*rec.Remote)
	}
	if rec.Step == nil {
		return
	}
	for _, h := range rec.Step.Hooks {
		to := journal.Remote{Name: "hook " + h.Name, Field: "its url in spec.hooks of Agent " + cmp.Or(rec.Step.Scope.Agent, r.Agent)}
		if h.Did == step.HookFailed {
			to.Unreachable = cmp.Or(h.Reason, "it failed")
		}
		r.countRemote(to)
	}
}

func (r *Run) countRemote(to journal.Remote) {
	if r.remotes == nil {
		r.remotes = map[string]RemoteCalls{}
	}
	key := to.Name + "\n" + to.Field
	calls := r.remotes[key]
	calls.Made++
	if to.Unreachable != "" {
		calls.Failed++
	} else {
		to.Unreachable = calls.Unreachable
	}
	calls.Remote = to
	r.remotes[key] = calls
}
