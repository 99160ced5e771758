package state

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Run is all sessions of a Run as they were when their journal stopped, and
// what they share.
type Run struct {
	// Agent is the name of the Run's own agent. Steps name only the agents below it.
	Agent string
	// Meter is what the Run had used.
	Meter step.Meter
	// Begun says that a call that may have changed something was begun. Effects
	// are named by the tool package; only its ReadOnly changes nothing.
	Begun bool
	// Restarts is how often the running attempt began again in its pod.
	Restarts int
	// Granted is what people granted on top of the limits.
	Granted Grant
	// Decided are the last decisions that the runner acted on, oldest first.
	Decided []journal.Decision

	acted    map[string]bool
	released map[journal.Source]bool
	remotes  map[string]RemoteCalls
	asked    map[string]time.Time // of limits: since when, by request
	sessions map[string]*Session
}

// A Grant is what people granted on top of the limits.
type Grant struct {
	Steps, Tokens, CostMicroUSD int64
}

// keepDecided is how many decisions are shown; of the others only the names
// are kept, so that none is acted on twice.
const keepDecided = 20

// readOnly is the effect class of a call that changes nothing.
const readOnly = "ReadOnly"

// Replay folds a journal into the state of its Run.
func Replay(records iter.Seq2[journal.Record, error]) (*Run, error) {
	var b Run
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		if err := b.Apply(r); err != nil {
			return nil, err
		}
	}
	return &b, nil
}

// Session is the session of a call; without a name, the Run's own. One that
// nothing was recorded of is empty.
func (b *Run) Session(name string) *Session {
	s := b.sessions[name]
	if s == nil {
		s = &Session{}
		if b.sessions == nil {
			b.sessions = map[string]*Session{}
		}
		b.sessions[name] = s
	}
	return s
}

// Acted says whether the runner acted on the decision of that name.
func (b *Run) Acted(decision string) bool { return b.acted[decision] }

// Below are the sessions below a call that have open calls, deepest first.
func (b *Run) Below(call string) []string {
	var open []string
	for name, s := range b.sessions {
		if isBelow(name, call) && len(s.Open()) > 0 {
			open = append(open, name)
		}
	}
	slices.SortFunc(open, func(x, y string) int {
		return cmp.Or(cmp.Compare(strings.Count(y, "."), strings.Count(x, ".")), cmp.Compare(x, y))
	})
	return open
}

// isBelow says whether a session is that of a call, or below it.
func isBelow(session, call string) bool {
	return session == call || strings.HasPrefix(session, call+".")
}

// parent is the session that a call belongs to: what its id begins with.
func parent(call string) string {
	return call[:max(strings.LastIndexByte(call, '.'), 0)]
}

// Apply adds one record. The loop applies each record that it appended, so
// that sessions under way and those read back are the same by construction.
func (b *Run) Apply(r journal.Record) error {
	if r.Meter != nil {
		b.Meter = *r.Meter
	}
	b.account(r)
	b.reach(r)
	if r.Decision != nil {
		b.decide(r)
	}
	switch r.Kind {
	case journal.KindHeader:
		b.Restarts = 0
	case journal.KindMark:
		b.mark(r)
	case journal.KindIntent:
		b.intend(r)
	case journal.KindMeter:
		b.Session(r.Session).Asked = nil
	case journal.KindHide:
		return b.Session(r.Session).hide(r)
	case journal.KindResult:
		return b.result(r)
	case journal.KindStep:
		return b.Session(r.Session).step(r)
	case journal.KindAsk:
		b.ask(r)
	case journal.KindChild:
		if r.Child != nil {
			b.Session(r.Session).child(*r.Child)
		}
	case journal.KindDecide:
	}
	return nil
}

// account takes over what a session and those above it had used.
func (b *Run) account(r journal.Record) {
	name := r.Session
	for _, used := range r.Accounts {
		b.Session(name).Used = used
		name = parent(name)
	}
}

func (b *Run) decide(r journal.Record) {
	d := *r.Decision
	if b.acted == nil {
		b.acted = map[string]bool{}
	}
	b.acted[d.Name] = true
	b.Decided = append(b.Decided, d)
	if extra := len(b.Decided) - keepDecided; extra > 0 {
		b.Decided = append([]journal.Decision(nil), b.Decided[extra:]...)
	}
	if d.Refused != "" {
		return
	}
	b.Granted.Steps = more(b.Granted.Steps, d.Steps)
	b.Granted.Tokens = more(b.Granted.Tokens, d.Tokens)
	b.Granted.CostMicroUSD = more(b.Granted.CostMicroUSD, d.CostMicroUSD)
	if r.Kind == journal.KindDecide && d.Request != "" {
		b.answered(r.Session, d)
	}
}

// more is what was granted with what is granted now. A sum that overflows adds
// nothing, nor does less than nothing.
func more(granted, now int64) int64 { return max(granted, granted+max(now, 0)) }

func (b *Run) mark(r journal.Record) {
	switch {
	case r.Mark == nil:
	case r.Mark.Type == journal.MarkRestarted:
		b.Restarts++
	case r.Mark.Type == journal.MarkEnded:
		s := b.Session(r.Session)
		s.Ended, s.Nudged = r.Mark.Text, false // who goes on from an end begins afresh
	case r.Mark.Type == journal.MarkNotice:
		b.Session(r.Session).recordNotice(r.Mark.Text)
	}
}

func (b *Run) intend(r journal.Record) {
	if r.Intent == nil {
		return
	}
	b.Session(r.Session).intend(r)
	b.Begun = b.Begun || r.Intent.CallID != "" && r.Intent.Effect != readOnly
}

// result adds a result and forgets the sessions below its call: nobody goes
// back to them.
func (b *Run) result(r journal.Record) error {
	if r.Step == nil {
		return fmt.Errorf("replaying the journal: result %d has no step", r.Seq)
	}
	b.Session(r.Session).result(r)
	for name := range b.sessions {
		if isBelow(name, r.Step.CallID) {
			delete(b.sessions, name)
		}
	}
	return nil
}

// A Store is the state of a Run under way: what it records goes to the log and
// then into the state, under the one lock that there is around it.
type Store struct {
	log journal.Log

	mu  sync.Mutex
	run Run
}

// NewStore returns the store of a Run with a log, and the name of the Run's own
// agent. It is empty before it is loaded.
func NewStore(log journal.Log, agent string) *Store {
	return &Store{log: log, run: Run{Agent: agent}}
}

// Load folds what the log has into the state, and passes each record on.
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

// Records are those of the log, oldest first.
func (s *Store) Records() iter.Seq2[journal.Record, error] { return s.log.Read() }

// Record appends the record that build returns and applies it. In between it calls
// recorded. Nothing else is recorded meanwhile, and nothing is read.
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

// View reads the state. What look is given is not to be kept.
func (s *Store) View(look func(*Run)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	look(&s.run)
}

// ViewSession reads one session, as View does.
func (s *Store) ViewSession(name string, look func(*Session)) {
	s.View(func(r *Run) { look(r.Session(name)) })
}

// Session returns a session as it stands. The steps in it never change; more are
// added, or others stand for them. Its maps are for who executes the last turn.
func (s *Store) Session(name string) Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.run.Session(name)
}
