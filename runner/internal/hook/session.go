package hook

import (
	"context"
	"errors"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

type beforeSession struct {
	questionHeader
	Prompt string `json:"prompt"`
}

type afterSession struct {
	questionHeader
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// start asks the hooks of BeforeSession.
func (a *asker) start(ctx context.Context, o *middleware.SessionStart) error {
	for _, h := range a.hooks[BeforeSession] {
		did, err := a.askHook(ctx, h, beforeSession{a.header(h, o.Scope), a.Redact(o.Prompt)}, func(answer []byte) (bool, error) {
			var change struct {
				Prompt *string `json:"prompt"`
			}
			if err := read(answer, &change); err != nil || change.Prompt == nil {
				return false, err
			}
			if *change.Prompt == "" {
				return false, errors.New("it answered an empty prompt")
			}
			o.Prompt = *change.Prompt
			return true, nil
		})
		o.Hooks = append(o.Hooks, did)
		if err := forbidden(h, did, err); err != nil {
			return err
		}
	}
	return nil
}

// forbidden is the error that forbids what was about to happen.
func forbidden(h task.Hook, did step.Hook, err error) error {
	if err == nil && did.Did == step.HookVetoed {
		return &middleware.VetoError{By: "the hook " + h.Name, Reason: did.Reason}
	}
	return err
}

// stop asks the hooks of AfterSession, all of them.
func (a *asker) stop(ctx context.Context, c middleware.SessionEnd) error {
	var errs []error
	for _, h := range a.hooks[AfterSession] {
		question := afterSession{a.header(h, c.Scope), c.Reason, a.Redact(c.Text)}
		_, err := a.askHook(ctx, h, question, func([]byte) (bool, error) { return false, nil })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
