package engine

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
)

// SafePoint is where the runner may leave, and where a Run is held whose runner may
// not. It returns once something new may begin, or why nothing may.
func (s *session) SafePoint(ctx context.Context) error {
	if left := s.run.requests.Leaving(); left != nil {
		return left
	}
	if now := s.run.signals(); !now.Paused || now.Stopped {
		return nil
	}
	return s.hold(ctx)
}

// hold waits in place while the Run is paused.
func (s *session) hold(ctx context.Context) error {
	s.records.Emit("Paused by spec.desiredState", events.StateChanged{State: approval.StatePaused})
	defer func() { s.records.Emit("The work continues", events.StateChanged{State: stateWorking}) }()
	err := s.run.requests.Wait(ctx, approval.Wait{Reason: approval.ForPause, Until: func(now signals.Signals) (bool, error) {
		if left := s.run.requests.Leaving(); left != nil {
			return false, left
		}
		return !now.Paused || now.Stopped, nil
	}})
	if err != nil && ctx.Err() != nil && !approval.Leaves(err) {
		return toolcall.Failure(ctx) // of a used-up duration what comes next knows
	}
	return err
}
