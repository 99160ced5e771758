package anthropic

import (
	"cmp"
	"errors"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// The reasons to stop that the API documents.
const (
	stopEndTurn    = "end_turn"
	stopSequence   = "stop_sequence"
	stopToolUse    = "tool_use"
	stopMaxTokens  = "max_tokens"
	stopWindowFull = "model_context_window_exceeded"
	stopRefusal    = "refusal"
	stopPause      = "pause_turn"
	stopCompaction = "compaction" // the provider compacted the session and paused
)

// finishes maps the stop reasons of providers to those of steps.
var finishes = map[string]step.Finish{
	stopEndTurn: step.FinishStop, stopSequence: step.FinishStop, "stop": step.FinishStop,
	stopToolUse: step.FinishCalls, "tool_calls": step.FinishCalls,
	stopMaxTokens: step.FinishLength, "length": step.FinishLength,
	stopWindowFull: step.FinishLength,
	stopRefusal:    step.FinishRefusal, "content_filter": step.FinishRefusal,
}

// paused reports whether the answer ended and is to be continued by another request.
func (a *answer) paused() bool {
	return errors.Is(a.cause, httpapi.ErrEnd) && (a.reason == stopPause || a.reason == stopCompaction)
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
	a.spent = a.spent.Plus(a.requestUsage(nil))
	a.pauses++
	a.blocks, a.output, a.begun, a.id, a.usage, a.reported = nil, 0, false, "", usage{}, false
	a.reason, a.stopped, a.cause = "", false, nil
	return true
}

// emitEnd yields the finish reason and the usage, or the error.
func (a *answer) emitEnd(yield func(model.Delta, error) bool) {
	a.complete()
	finish, err := a.end()
	usage, spent := a.totalUsage(err)
	for _, d := range a.Take() {
		if !yield(d, nil) {
			return
		}
	}
	if spent && !yield(model.Delta{Finish: finish, Usage: &usage}, nil) {
		return
	}
	if err != nil {
		yield(model.Delta{}, err)
	}
}

// complete emits what is known only at the end of an answer.
func (a *answer) complete() {
	for _, p := range a.blocks {
		if a.reason != "" || a.stopped {
			a.done(p)
		}
	}
	a.endThinking()
	if len(a.callers) > 0 {
		a.emitCallPositions()
	}
}

// totalUsage returns the usage of all requests, and whether there is any: a refused
// request has none.
func (a *answer) totalUsage(err error) (step.Usage, bool) {
	_, incomplete := errors.AsType[*model.IncompleteError](err)
	if !a.begun && !incomplete && err != nil {
		return a.spent, a.pauses > 0
	}
	last := a.requestUsage(err)
	all := a.spent.Plus(last)
	if n := len(a.usage.Iterations); n > 1 {
		it := a.usage.Iterations[n-1]
		all.ContextTokens = int64(it.Input + it.CacheRead + it.CacheWrite + it.Output)
	} else if a.pauses > 0 {
		all.ContextTokens = last.InputTokens + last.OutputTokens
	}
	return all, true
}

// requestUsage returns the usage of this request, reported or estimated.
func (a *answer) requestUsage(err error) step.Usage {
	u := a.usage.convert()
	if a.reported && err == nil && (u.InputTokens > 0 || u.OutputTokens > 0) {
		return u
	}
	if u.InputTokens == 0 {
		u.InputTokens = model.EstimateInput(a.exchange.req)
	}
	u.OutputTokens = max(u.OutputTokens, model.EstimateTokens(a.output))
	u.Estimated = true
	return u
}

// end returns the finish reason, or the error.
func (a *answer) end() (step.Finish, error) {
	if a.exchange.answer == nil {
		return "", a.cause
	}
	if err := a.exchange.Broken(a.cause); err != nil {
		return "", err
	}
	reason := strings.ToLower(a.reason)
	if reason == "" && a.stopped && a.visible {
		reason = stopEndTurn // some servers send message_stop without a reason
	}
	switch {
	case reason == "":
		return "", a.exchange.Interrupted(a.cause)
	case reason == stopWindowFull && !a.visible:
		return "", &model.ContextTooLongError{Message: "the model's window was full before it said anything"}
	}
	return a.finish(cmp.Or(finishes[reason], step.FinishOther)), nil
}

// finish corrects the reported reason by the content of the answer.
func (a *answer) finish(reason step.Finish) step.Finish {
	switch {
	case a.isTruncated && reason != step.FinishRefusal:
		return step.FinishLength
	case a.calls > 0 && reason == step.FinishStop:
		return step.FinishCalls
	case a.calls == 0 && reason == step.FinishCalls:
		return step.FinishStop
	}
	return reason
}
