package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// Start runs a program. It returns a RefusedError if the command cannot be
// started, and a LostError if it is unknown whether the command was started; the
// client does not retry.
func (c *Client) Start(ctx context.Context, cmd Command) (Process, error) {
	if err := cmd.Check(); err != nil {
		return nil, err
	}
	conn, s, err := c.dialInSession(ctx)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	conn.SetTimeout(startTimeout)
	if err := requestStart(conn, cmd); err != nil {
		stop()
		_ = conn.Close() // which kills what was started
		return nil, startError(ctx, s, err)
	}
	if !stop() {
		return nil, context.Cause(ctx)
	}
	conn.SetTimeout(0)
	p := newProcess(conn, s, cmd.Limits)
	go p.receive()
	go p.watch(ctx)
	return p, nil
}

// requestStart sends a command and waits until it runs.
func requestStart(conn *frame.Conn, cmd Command) error {
	if err := conn.SendMessage(frame.Start, cmd); err != nil {
		return err //nolint:wrapcheck // startError wraps it
	}
	f, err := conn.Receive()
	switch {
	case err != nil:
		return err //nolint:wrapcheck // as above
	case f.Kind == frame.Started:
		return nil
	case f.Kind == frame.Refused:
		refused := &RefusedError{}
		if err := conn.Message(f, refused); err != nil {
			return err //nolint:wrapcheck // as above
		}
		refused.Subject = short(refused.Subject)
		return refused
	}
	return fmt.Errorf("%w: %q where a program should start", frame.ErrProtocol, f.Kind)
}

// startError returns why a command was not started.
func startError(ctx context.Context, s *session, err error) error {
	if refused, ok := errors.AsType[*RefusedError](err); ok {
		return refused
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, frame.ErrProtocol) {
		return fmt.Errorf("starting a command: %w", err)
	}
	alive := time.NewTimer(lossTimeout)
	defer alive.Stop()
	select {
	case <-s.done:
		return &LostError{Detail: s.lossDetail()}
	case <-alive.C:
		return &LostError{Detail: lostSupervisor}
	}
}
