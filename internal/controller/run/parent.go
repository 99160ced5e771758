package run

import (
	"time"

	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// expiresAfter returns how long a finished Run is kept by its TTL; false: it is not deleted. The TTL does not run while
// the parent is active.
func expiresAfter(s state) (left time.Duration, goes bool) {
	if s.parentIsActive() {
		return 0, false
	}
	ttl, goes := runstatus.TTL(s.run, s.defaultTTL)
	age := runstatus.SinceCompletion(s.run, s.now)
	if since, known := s.sinceParentEnded(); known {
		age = min(age, since)
	}
	return ttl - age, goes
}

// parentIsActive reports whether the parent of the Run is active: it may still read the
// result.
func (s state) parentIsActive() bool {
	return len(s.ancestors) > 0 && s.ancestors[0].Run != nil && s.ancestors[0].Run.Status.CompletionTime == nil
}

// sinceParentEnded returns how long ago the parent ended; false: not known.
func (s state) sinceParentEnded() (age time.Duration, ok bool) {
	if len(s.ancestors) == 0 || s.ancestors[0].Run == nil || s.ancestors[0].Run.Status.CompletionTime == nil {
		return 0, false
	}
	return s.now.Sub(s.ancestors[0].Run.Status.CompletionTime.Time), true
}
