package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// maxPause is the longest that a provider is waited for, in place.
	maxPause = time.Hour
	// maxPauses is how often in a row.
	maxPauses = 5
)

// spent records what a failed model call used and returns its error.
func (s *session) spent(ctx context.Context, m *Model, req *model.Request, resp *model.Response, err error) error {
	// Nothing arrived and nobody told: most likely the provider did nothing. Not
	// so when we hung up ourselves.
	if resp.Usage == (step.Usage{}) && (ctx.Err() != nil || len(resp.Parts)+len(resp.Calls) > 0) {
		resp.Usage = estimate(m, req, *resp)
	}
	s.account.add(func(used *step.Meter) {
		used.Errors++
		used.Usage = used.Usage.Plus(resp.Usage)
	})
	if recErr := s.record(journal.Record{Kind: journal.KindMeter}); recErr != nil {
		return s.turn.fail(errors.Join(recErr, err))
	}
	return err
}

// estimate is what an answer used, where the provider did not tell.
func estimate(m *Model, req *model.Request, resp model.Response) step.Usage {
	size := 0
	for _, p := range resp.Parts {
		size += len(p.Text)
	}
	for _, c := range resp.Calls {
		size += len(c.Name) + len(c.Args)
	}
	return m.priced(resp.Model, step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: model.EstimateTokens(size), Estimated: true})
}

// unanswered is what a failed turn of the model means to the session; nil: it
// goes on, and what comes next knows more.
func (s *session) unanswered(ctx context.Context, m *Model, err error) error {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, errStopped) {
			return cause
		}
		return nil // what comes next sees it too
	}
	if end, ok := asEnd(err); ok {
		return end
	}
	if tooLong, ok := errors.AsType[*model.ContextTooLongError](err); ok {
		s.overflow = tooLong
		return nil
	}
	if limited, ok := errors.AsType[*model.RateLimitedError](err); ok && s.patient(limited) {
		return s.pause(ctx, limited.RetryAfter)
	}
	if end, ok := asEnd(denied(err)); ok {
		return end
	}
	if s.turn.heard {
		return task.End(task.ReasonRunnerFailed, "A layer around the model failed behind its answer: %w", err)
	}
	return modelEnd(m, err)
}

// patient says whether it is worth waiting for as long as a provider asks.
func (s *session) patient(limited *model.RateLimitedError) bool {
	left, bounded := s.account.left()
	return limited.RetryAfter > 0 && limited.RetryAfter <= maxPause && s.limited < maxPauses && (!bounded || limited.RetryAfter <= left)
}

// pause waits as long as a provider asks. What comes next asks again.
func (s *session) pause(ctx context.Context, d time.Duration) error {
	s.limited++
	s.emit(fmt.Sprintf("The provider asks to wait for %s", d), events.StateChanged{State: stateLimited})
	back := s.crew.wait(forProvider)
	defer func() {
		back()
		s.emit("The model is asked again", events.StateChanged{State: stateWorking})
		s.Report.Report(s.progress)
	}()
	timer := time.NewTimer(d)
	defer timer.Stop()
	s.tellNow()
	settled := time.NewTimer(steady)
	defer settled.Stop()
	for {
		change, turned := s.crew.change(), s.turned()
		if s.paused() {
			s.limited-- // what comes next holds, then asks again
			return nil
		}
		select {
		case <-turned:
			continue
		case <-change:
			settled.Reset(steady)
			continue
		case <-settled.C:
			s.showState()
			continue
		case <-timer.C:
		case <-s.Interrupted:
		case <-ctx.Done():
			if cause := context.Cause(ctx); !errors.Is(cause, errStopped) {
				return cause
			}
		}
		return nil
	}
}

// modelEnd is the end that a model's error brings.
func modelEnd(m *Model, err error) *task.EndError {
	name, credential := m.Name, m.Credential
	if source, ok := errors.AsType[*model.SourceError](err); ok {
		name, credential, err = source.Model, source.Credential, source.Err
	}
	if credential == "" {
		credential = "whether the Model needs credentials"
	}
	var (
		unreadable   *model.NoCredentialError
		unauthorized *model.UnauthorizedError
		badRequest   *model.BadRequestError
		notAModel    *model.NotAModelError
	)
	switch {
	case errors.As(err, &unreadable):
		return task.End(task.ReasonModelUnavailable, "Model %s: %w; check %s", name, err, credential)
	case errors.As(err, &unauthorized):
		return task.End(task.ReasonMisconfigured, "Model %s: %w; check %s", name, err, credential)
	case errors.As(err, &notAModel):
		return task.End(task.ReasonMisconfigured, "Model %s: %w", name, err)
	case errors.As(err, &badRequest):
		return task.End(task.ReasonMisconfigured, "Model %s: %w; check the Model's endpoint, model and parameters", name, err)
	}
	return task.End(task.ReasonModelUnavailable, "Model %s: %w; if this does not pass, check the Model's endpoint", name, err)
}
