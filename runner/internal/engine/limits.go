package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// warnOfLimits emits one warning for each limit of the Run that is nearly used up.
func (r *run) warnOfLimits() {
	for _, l := range r.meter.Near() {
		if r.status.markWarned(l.Name) {
			r.config.Events.Emit(r.root.records.scope, l.String(), events.LimitNear{Limit: l.Name, Used: l.Used, Max: l.Max})
		}
	}
}

// requestGrant asks users to raise a limit that is used up. If no user does in time, the limit ends the Run, as it does
// without asking.
func (s *session) requestGrant(ctx context.Context, l meter.Limit) error {
	since, err := s.run.root.recordLimitRequest(l.Request())
	if err != nil {
		return err
	}
	q := &approval.Request{
		Since: since,
		Limit: &l, Session: s.run.root.records, Reason: approval.ForGrant,
		Pending: task.Pending{
			ID: l.Request(), Kind: task.PendingLimit,
			Question: l.String() + ". Grant more?",
		},
	}
	_, answered, err := s.run.requests.Await(ctx, q)
	switch {
	case errors.Is(err, signals.ErrStopped):
		return nil // what comes next sees it too
	case err == nil && !answered:
		return l.End(s.actor.Place)
	}
	return err
}

// recordLimitRequest returns since when users have been asked to raise a limit. If no earlier attempt asked, it records
// that this one does.
func (s *session) recordLimitRequest(request string) (time.Time, error) {
	if since := s.limitRequestedAt(request); !since.IsZero() {
		return since, nil
	}
	if err := s.records.Record(journal.Record{Kind: journal.KindAsk, Request: &journal.Request{ID: request}}); err != nil {
		return time.Time{}, fmt.Errorf("recording a request: %w", err)
	}
	return s.limitRequestedAt(request), nil
}

func (s *session) limitRequestedAt(request string) (since time.Time) {
	s.run.state.View(func(now *state.Run) { since = now.LimitRequestedAt(request) })
	return since
}

// raiseLimits raises the limits of the Run.
func (r *run) raiseLimits(d journal.Decision) {
	r.meter.Extend(d.Steps, d.Tokens, d.CostMicroUSD)
	r.status.clearWarnings()
}
