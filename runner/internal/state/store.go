package state

import (
	"fmt"
	"iter"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
)

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
