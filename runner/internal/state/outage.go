package state

import (
	"cmp"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
)

// An Outage is what is known of a model that is unavailable, over all attempts.
type Outage struct {
	// Since is when the first request failed. Zero: the model is available.
	Since time.Time
	// SilentSince is when the first request failed of those after which no provider named a
	// time, with no such time in between. Zero: the last provider named one.
	SilentSince time.Time
	// PromisedSince is when the first request failed after which a provider named a time.
	PromisedSince time.Time
	// Waits is how many waits began.
	Waits int
	// BrokenOff is how many of them followed an answer that the provider broke off.
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
