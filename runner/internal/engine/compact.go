package engine

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxCompactions is how many compactions in a row may free too little.
const maxCompactions = 3

// trigger returns the size from which on a request is compacted before the model is asked.
func (c *modelCaller) trigger() int64 {
	name, size, maxOutput := c.actor.Model.next()
	trigger := compaction.Trigger(size, maxOutput)
	if known := c.refusedSizes[name].window; known > 0 {
		trigger = min(trigger, compaction.Trigger(known, maxOutput))
	}
	return trigger
}

// A contextSize is the size of the next request in tokens, and the size from which on the session is compacted.
type contextSize struct {
	used    int64 // as the provider counts, if it reported that
	trigger int64 // a larger session is compacted
	// exceeds reports that by our own estimate the request does not fit the window. Some servers cut a request that is
	// too long without an error.
	exceeds bool
}

// contextSize measures the request of these steps. By our own estimate, a request is also too large if it exceeds the
// window, or is about as large as a refused one.
func (c *modelCaller) contextSize(steps []step.Step) contextSize {
	req := c.requestOf(steps)
	estimate := model.EstimateInput(req)
	size := contextSize{used: compaction.Used(req), trigger: c.trigger()}
	name, window, maxOutput := c.actor.Model.next()
	size.exceeds = compaction.Exceeds(estimate, window, maxOutput)
	refused := compaction.TriggerBelow(c.refusedSizes[name].estimate)
	switch {
	case refused > 0 && estimate > refused:
		size.used, size.trigger = max(size.used, estimate), min(size.trigger, refused)
	case size.exceeds:
		size.used, size.trigger = max(size.used, estimate), min(size.trigger, estimate-1)
	}
	if c.overflow != nil {
		// Where we think that it fits, the provider counts more than we do.
		size.trigger = min(size.trigger, size.used/4*3)
	}
	return size
}

// compact hides steps from the model. The journal keeps them.
func (c *modelCaller) compact(ctx context.Context, v view, cut compaction.Cut) error {
	hide := journal.Hide{Through: cut.Through}
	if !cut.Clear {
		summary, err := c.summarize(ctx, v.Steps)
		if summary == "" || err != nil {
			return err
		}
		hide.Summary = summary
	}
	before := model.EstimateInput(c.request())
	c.compactions++
	c.compactedSince++
	if err := c.records.Record(journal.Record{Kind: journal.KindHide, Hide: &hide}); err != nil {
		return fmt.Errorf("recording a compaction: %w", err)
	}
	c.overflow = nil // the provider is asked again, whatever we count
	after := model.EstimateInput(c.request())
	c.records.Emit(fmt.Sprintf("Messages through %d are hidden: about %d tokens become %d", cut.Through, before, after),
		events.Compacted{Session: c.records.name, Through: cut.Through, Before: before, After: after})
	return nil
}

// summarize has the model summarize the steps that are to be hidden. It asks at the end of the unchanged session, so
// that the prompt cache of the provider applies. If the session is too long even for that, results of tools are left
// out of the request. An empty summary without an error means that next must decide again.
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
	c.answered(name)
	var text strings.Builder
	for _, p := range resp.Parts {
		if p.Kind == step.PartText {
			text.WriteString(p.Text)
		}
	}
	took := c.run.config.Now().Sub(began)
	c.run.status.addRecent(task.Recent{Kind: task.KindModel, Name: c.records.label(name), Summary: "summed up the session", DurationMs: took.Milliseconds()})
	if strings.TrimSpace(text.String()) == "" || resp.Finish == step.FinishRefusal {
		return noSummary, nil
	}
	return c.run.config.Redact.String(text.String()), nil
}

// summary requests a summary, with less and less of the session until the request fits: first by our own estimate, then
// by what the provider answers.
func (c *modelCaller) summary(ctx context.Context, m *Model, steps []step.Step) (model.Response, error) {
	_, window, maxOutput := m.next()
	for level := 0; ; level++ {
		req := c.requestOf(compaction.Shrink(steps, level))
		req.Params = m.Params
		req.Steps = append(req.Steps, c.records.userStep(compaction.SummaryPrompt, step.NoteRunner))
		last := level == compaction.ShrinkLevels-1
		if !last && compaction.Exceeds(model.EstimateInput(req), window, maxOutput) {
			continue
		}
		resp, err := c.callModel(ctx, m, req)
		if last || !isTooLong(err) && !mayBeTooLong(err) {
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

// A refusedSize is what is known of the largest request that a Model accepts, because it refused one. Zero: not known.
type refusedSize struct {
	window   int64 // as the provider says
	estimate int64 // our estimate of the smallest request that was refused
}

const (
	// nearPercent is how much of the window a request and its answer must take at least before a refusal can be for its
	// length.
	nearPercent = 80
	// A request is much larger than the last accepted one if it has minLarger tokens and
	// largerPercent more, and much larger than the first if it has minGrown tokens more and
	// twice as many.
	minLarger     = 500
	largerPercent = 10
	minGrown      = 4000
)

// refuse records that a request is, or may be, too long for the provider. It returns false if err has another cause.
func (c *modelCaller) refuse(m *Model, err error) bool {
	tooLong, known := errors.AsType[*model.ContextTooLongError](err)
	switch {
	case known:
		c.refused = nil
	case m == &c.actor.Model && c.refused == nil && mayBeTooLong(err) && c.isLarge(m):
		tooLong, c.refused = &model.ContextTooLongError{Message: err.Error()}, modelEnd(m, c.actor, err)
	default:
		return false
	}
	c.overflow = tooLong
	c.learn(m, err, tooLong.Window)
	if c.turn.shown || c.refused != nil {
		c.records.Emit(task.Cut("The model is asked again with a shorter session: "+err.Error(), task.MaxSummary), events.Reset{Step: c.turn.seq()})
	}
	return true
}

// orAway chooses between two errors: a Model was unavailable, and its fallback refused the request as too long. If the
// session cannot be made short enough for the fallback, the error of the unavailable Model is returned, so that the
// session waits for it.
func (c *modelCaller) orAway(err error) error {
	from, is := errors.AsType[*source.Error](err)
	if !is || from.Away == nil {
		return err
	}
	steps := c.records.read().Steps
	size := c.contextSize(steps)
	if _, ok := compaction.PlanRefused(steps, size.used, size.trigger); ok && c.compactedSince < maxCompactions {
		return err
	}
	return from.Away
}

// mayBeTooLong reports whether an error is a refusal with an unknown cause. Servers word a request that is too long in
// many ways.
func mayBeTooLong(err error) bool {
	bad, is := errors.AsType[*model.BadRequestError](err)
	return is && (bad.Status == http.StatusBadRequest || bad.Status == http.StatusUnprocessableEntity)
}

// isLarge reports whether the request is near the window, or much larger than the first or the last accepted request of
// its session. A session whose first request is refused has no accepted one, so only the window counts.
func (c *modelCaller) isLarge(m *Model) bool {
	steps := c.records.read().Steps
	size := model.EstimateInput(c.requestOf(steps))
	_, window, maxOutput := m.next()
	if window > 0 && max(size, c.turn.requestSize)+maxOutput >= window*nearPercent/100 {
		return true
	}
	answers := answersIn(steps)
	if len(answers) == 0 {
		return false
	}
	first := model.EstimateInput(c.requestOf(steps[:answers[0]]))
	last := model.EstimateInput(c.requestOf(steps[:answers[len(answers)-1]]))
	return size-last >= max(minLarger, last*largerPercent/100) || size-first >= max(minGrown, first)
}

// answersIn returns the positions of the model's answers.
func answersIn(steps []step.Step) []int {
	var all []int
	for i := range steps {
		if steps[i].Role == step.RoleAssistant {
			all = append(all, i)
		}
	}
	return all
}

// learn keeps the size of a request that was refused, so that the next one is compacted
// before it is as large.
func (c *modelCaller) learn(m *Model, err error, window int64) {
	name, _, _ := m.next()
	if from, ok := errors.AsType[*source.Error](err); ok {
		name = from.Model
	}
	if c.refusedSizes == nil {
		c.refusedSizes = map[string]refusedSize{}
	}
	known, estimate := c.refusedSizes[name], model.EstimateInput(c.request())
	if window > 0 && (known.window == 0 || window < known.window) {
		known.window = window
	}
	if known.estimate == 0 || estimate < known.estimate {
		known.estimate = estimate
	}
	c.refusedSizes[name] = known
}
