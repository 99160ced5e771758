package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxCompactions is how many compactions in a row may be too little.
const maxCompactions = 3

// trigger is from where on a request is too much for the model about to be
// asked.
func (c *modelCaller) trigger() int64 {
	_, size, maxOutput := c.actor.Model.next()
	trigger := compaction.Trigger(size, maxOutput)
	if c.overflow != nil && c.overflow.Window > 0 {
		trigger = min(trigger, compaction.Trigger(c.overflow.Window, maxOutput))
	}
	return trigger
}

// requestSize is how much of the model's window a request takes, and from where on
// that is too much.
func (c *modelCaller) requestSize(steps []step.Step) (used, trigger int64) {
	used, trigger = compaction.Used(c.requestOf(steps)), c.trigger()
	if c.overflow != nil {
		// Where we think that it fits, the provider counts more than we do.
		trigger = min(trigger, used/4*3)
	}
	return used, trigger
}

// compact takes steps out of the model's sight. The journal keeps them.
func (c *modelCaller) compact(ctx context.Context, v view, cut compaction.Cut) error {
	hide := journal.Hide{Through: cut.Through}
	if !cut.Clear {
		summary, err := c.summarize(ctx, v.Steps)
		if summary == "" || err != nil {
			return err
		}
		hide.Summary = summary
	}
	c.compactions++
	if err := c.records.Record(journal.Record{Kind: journal.KindHide, Hide: &hide}); err != nil {
		return fmt.Errorf("recording a compaction: %w", err)
	}
	after := compaction.Used(c.request())
	if after < v.used {
		c.overflow = nil // the provider is asked again
	}
	c.records.Emit(fmt.Sprintf("Steps through %d are hidden: %d tokens become %d", cut.Through, v.used, after),
		events.Compacted{Session: c.records.name, Through: cut.Through, Before: v.used, After: after})
	return nil
}

// summarize has the model sum up what is about to be hidden, as the next thing
// that it is asked: what the provider has cached serves once more. Where the
// session does not fit even for that, results of tools are left out of it. An
// empty summary without an error says that what comes next knows more.
func (c *modelCaller) summarize(ctx context.Context, steps []step.Step) (string, error) {
	m := &c.actor.Model
	if c.actor.Summarizer != nil {
		m = c.actor.Summarizer
	}
	name := c.beginTurn(m)
	began := c.run.config.Now()
	untilStop, cancel := c.untilStopped(ctx)
	defer cancel()
	resp, err := c.summary(untilStop, m, steps)
	switch {
	case c.turn.fault != nil:
		return "", c.turn.fault
	case isTooLong(err):
		return "", task.End(task.ReasonContextTooLong, "Model %s: %w; even a summary does not fit: give the Run less to read, or use a Model with a larger window", name, err)
	case isRefused(err):
		return noSummary, nil
	case err != nil:
		return "", c.handleError(untilStop, m, err)
	}
	c.providerWaits = 0
	var text strings.Builder
	for _, p := range resp.Parts {
		if p.Kind == step.PartText {
			text.WriteString(p.Text)
		}
	}
	took := c.run.config.Now().Sub(began)
	c.run.status.addRecent(task.Recent{Step: c.turn.number, Kind: task.KindModel, Name: c.records.label(name), Summary: "summed up the session", DurationMs: took.Milliseconds()})
	if strings.TrimSpace(text.String()) == "" || resp.Finish == step.FinishRefusal {
		return noSummary, nil
	}
	return c.run.config.Redact.String(text.String()), nil
}

// summary asks for it, with less and less of the session until it fits.
func (c *modelCaller) summary(ctx context.Context, m *Model, steps []step.Step) (model.Response, error) {
	for level := 0; ; level++ {
		req := c.requestOf(compaction.Shrink(steps, level))
		req.Params = m.Params
		req.Steps = append(req.Steps, c.records.userStep(compaction.SummaryPrompt, step.NoteRunner))
		resp, err := c.callModel(ctx, m, req)
		if !isTooLong(err) || level == compaction.ShrinkLevels-1 {
			return resp, err
		}
	}
}

func isRefused(err error) bool {
	_, refused := errors.AsType[*model.RefusedError](err)
	return refused
}

func isTooLong(err error) bool {
	_, tooLong := errors.AsType[*model.ContextTooLongError](err)
	return tooLong
}
