package anthropic

import (
	"errors"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// paused reports whether the answer ended and another request must continue it.
func (a *answer) paused() bool {
	return errors.Is(a.cause, httpapi.ErrEnd) && a.ending.Meaning() == httpapi.FinishPaused
}

// resume prepares the next request of a paused answer, and reports whether there is one.
func (a *answer) resume() bool {
	if !a.paused() {
		return false
	}
	for _, p := range a.blocks {
		a.done(p)
		if p.kind == typeText && isBlank(p.content.String()) || p.isEmpty() {
			continue
		}
		a.exchange.previous = append(a.exchange.previous, p.raw())
	}
	if len(a.exchange.previous) == 0 {
		a.cause = &model.IncompleteError{} // it paused without content
		return false
	}
	spent, requests := a.requestUsage(nil)
	a.spent, a.requests = a.spent.Plus(spent), append(a.requests, requests...)
	a.pauses++
	a.blocks, a.output, a.begun, a.id, a.usage, a.reported = nil, 0, false, "", usage{}, false
	a.ending, a.stopped, a.cause = httpapi.Ending{}, false, nil
	return true
}

// emitEnd yields the finish reason and the usage, or the error.
func (a *answer) emitEnd(yield func(model.Delta, error) bool) {
	a.complete()
	finish, unclear, err := a.end()
	usage, requests, spent := a.totalUsage(err)
	for _, d := range a.Take() {
		if !yield(d, nil) {
			return
		}
	}
	if spent && !yield(model.Delta{Finish: finish, UnclearReason: unclear, Usage: &usage, Requests: requests}, nil) {
		return
	}
	if err != nil {
		yield(model.Delta{}, err)
	}
}

// complete emits what is known only at the end of an answer.
func (a *answer) complete() {
	for _, p := range a.blocks {
		if a.ending.Came() || a.stopped {
			a.done(p)
		}
	}
	a.endThinking()
}

// totalUsage returns the usage of all requests, the usage of each if the sum is not enough, and whether there is any: a
// refused request has none.
func (a *answer) totalUsage(err error) (step.Usage, []model.RequestUsage, bool) {
	_, incomplete := errors.AsType[*model.IncompleteError](err)
	if !a.begun && !incomplete && err != nil {
		return a.spent, a.requests, a.pauses > 0
	}
	last, requests := a.requestUsage(err)
	all := a.spent.Plus(last)
	if n := len(a.usage.Iterations); n > 1 {
		it := a.usage.Iterations[n-1]
		all.ContextTokens = int64(it.Input + it.CacheRead + it.CacheWrite + it.Output)
	} else if a.pauses > 0 {
		all.ContextTokens = last.InputTokens + last.OutputTokens
	}
	if requests = append(a.requests, requests...); len(requests) == 1 && (!requests[0].Estimated || !requests[0].InputReported) {
		requests = nil
	}
	return all, requests, true
}

// requestUsage returns the usage of this request, reported or estimated, and of its parts.
func (a *answer) requestUsage(err error) (step.Usage, []model.RequestUsage) {
	u, parts := a.usage.convert(), a.usage.requests()
	if a.reported && httpapi.IsComplete(a.cause, err) && (u.InputTokens > 0 || u.OutputTokens > 0) {
		return u, parts
	}
	if u.InputTokens == 0 {
		u.InputTokens = model.EstimateInput(a.exchange.req)
		parts = []model.RequestUsage{{Usage: u}}
	}
	more := max(model.EstimateTokens(a.output)-u.OutputTokens, 0)
	u.OutputTokens += more
	u.Estimated = true
	for i := range parts {
		parts[i].Estimated = true
	}
	parts[len(parts)-1].OutputTokens += more
	return u, parts
}

// end returns the finish, and the finish reason if that is unclear, or the error.
func (a *answer) end() (finish step.Finish, unclear string, err error) {
	if a.exchange.answer == nil {
		return "", "", a.cause
	}
	if !a.ending.Came() && a.stopped && a.visible {
		a.ending.Add(httpapi.Piece{Reason: "end_turn"}) // some servers send message_stop without a reason
	}
	content := httpapi.Content{HasCalls: a.calls > 0, IsTruncated: a.isTruncated || a.paused()}
	return a.exchange.Finish(&a.ending, content, a.cause)
}
