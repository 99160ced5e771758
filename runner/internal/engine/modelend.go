package engine

import (
	"context"
	"errors"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/model/modelend"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// modelEnd returns the error that ends the session of an agent after an error of its model.
func modelEnd(m *Model, a *Actor, err error) *task.EndError {
	return modelend.Of(m.Name, m.Credential, modelend.Agent{Name: a.Agent.Name, Place: a.Place, Tools: a.Tools}, err)
}

// recordFailure records what a failed model call used and returns its error.
func (c *modelCaller) recordFailure(ctx context.Context, m *Model, req *model.Request, resp *model.Response, err error) error {
	// If nothing arrived and no usage was reported, the provider most likely did nothing. This does not hold if we
	// closed the connection ourselves.
	if resp.Usage == (step.Usage{}) && (ctx.Err() != nil || len(resp.Parts)+len(resp.Calls) > 0) {
		resp.Usage = c.estimate(m, req, *resp)
	}
	c.records.account.Add(func(used *step.Meter) {
		if !errors.Is(err, errUnfinished) {
			used.Errors++
		}
		used.Usage = used.Usage.Plus(resp.Usage)
	})
	if recErr := c.records.Record(journal.Record{Kind: journal.KindMeter}); recErr != nil {
		return c.turn.fail(errors.Join(recErr, err))
	}
	return err
}

// estimate returns the estimated usage of an answer whose provider reported none.
func (c *modelCaller) estimate(m *Model, req *model.Request, resp model.Response) step.Usage {
	size := 0
	for _, p := range resp.Parts {
		size += len(p.Text)
	}
	for _, c := range resp.Calls {
		size += len(c.Name) + len(c.Args)
	}
	return m.priced(resp.Model, step.Usage{InputTokens: model.EstimateInput(req), OutputTokens: model.EstimateTokens(size), Estimated: true}, c.turn.sentAt)
}

// handleError returns the error that ends the session after a failed turn of the model, or nil if the session
// continues: then next decides again.
func (c *modelCaller) handleError(ctx context.Context, m *Model, err error) error {
	if ctx.Err() != nil {
		if cause := context.Cause(ctx); !errors.Is(cause, signals.ErrStopped) {
			return cause
		}
		return nil // what comes next sees it too
	}
	if errors.Is(err, errUnfinished) {
		return nil // likewise
	}
	if end, ok := asEnd(err); ok {
		return end
	}
	if err = c.orAway(err); c.refuse(m, err) {
		return nil // what comes next makes room
	}
	if model.Outage(err) && c.records.account.SpentWith(step.Usage{}) {
		return nil // likewise: no limit is waited out
	}
	if waited, err := c.waitOut(ctx, m, err); waited {
		return err
	}
	if end, ok := asEnd(endOfVeto(err)); ok {
		return end
	}
	if c.turn.answered {
		return task.End(task.ReasonRunnerFailed, "A layer around the model failed behind its answer: %w", err)
	}
	return modelEnd(m, c.actor, err)
}
