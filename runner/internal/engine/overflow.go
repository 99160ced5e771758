package engine

import (
	"errors"
	"net/http"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A refusedSize is what is known of the largest request that a Model takes, because it
// refused one. Zero: not known.
type refusedSize struct {
	window   int64 // as the provider says
	estimate int64 // our estimate of the smallest request that was refused
}

const (
	// nearPercent is how much of the window a request and its answer take at least that may
	// have been refused for its length.
	nearPercent = 80
	// A request is much larger than the last accepted one if it has minLarger tokens and
	// largerPercent more, and much larger than the first if it has minGrown tokens more and
	// twice as many.
	minLarger     = 500
	largerPercent = 10
	minGrown      = 4000
)

// refuse takes over that a request is too long for the provider, or may be. It returns false
// if err says something else.
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
		c.records.Emit(task.Cut("The model is asked again with a shorter session: "+err.Error(), task.MaxSummary), events.Reset{Step: c.turn.number})
	}
	return true
}

// mayBeTooLong reports whether an error is a refusal of the request for a cause that is not
// known. Servers have many words for a request that is too long.
func mayBeTooLong(err error) bool {
	bad, is := errors.AsType[*model.BadRequestError](err)
	return is && (bad.Status == http.StatusBadRequest || bad.Status == http.StatusUnprocessableEntity)
}

// isLarge reports whether the request is near the window, or much larger than the first or
// the last one that was accepted in its session. The first request of a session was not
// refused for having grown.
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
	if source, ok := errors.AsType[*model.SourceError](err); ok {
		name = source.Model
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
