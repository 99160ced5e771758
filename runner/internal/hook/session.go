package hook

import (
	"context"
	"errors"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

type beforeSession struct {
	requestHeader
	Prompt string `json:"prompt"`
}

type afterSession struct {
	requestHeader
	Reason string `json:"reason"`
	Text   string `json:"text"`
}

// start calls the hooks of BeforeSession.
func (a *caller) start(ctx context.Context, o *middleware.SessionStart) error {
	for _, h := range a.hooks[BeforeSession] {
		did, err := a.callHook(ctx, h, beforeSession{a.header(h, o.Scope), a.Redact(o.Prompt)}, func(answer []byte) (bool, error) {
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
		callreport.AddHook(ctx, did)
		if err := vetoError(h, did, err); err != nil {
			return err
		}
	}
	return nil
}

// vetoError returns the error of a hook that denied.
func vetoError(h task.Hook, did step.Hook, err error) error {
	if err == nil && did.Did == step.HookVetoed {
		return &middleware.VetoError{By: "the hook " + h.Name, Reason: did.Reason}
	}
	return err
}

// stop calls all hooks of AfterSession.
func (a *caller) stop(ctx context.Context, c middleware.SessionEnd) error {
	var errs []error
	for _, h := range a.hooks[AfterSession] {
		question := afterSession{a.header(h, c.Scope), c.Reason, a.Redact(c.Text)}
		_, err := a.callHook(ctx, h, question, func([]byte) (bool, error) { return false, nil })
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
