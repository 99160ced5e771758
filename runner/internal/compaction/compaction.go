package compaction

import (
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

const (
	// maxTrigger is how much of even the largest window is used: beyond it models read
	// less well, and every turn costs more.
	maxTrigger = 170_000
	// fullPercent is how much of a window the input and the answer may take.
	fullPercent = 85
	// unknownWindow is assumed of a model that nothing is known of.
	unknownWindow = 128_000
)

// Trigger returns how many tokens of a window may be used before a compaction, if an answer
// may have up to maxOutput. Answers that may take most of the window get half of it.
func Trigger(window, maxOutput int64) int64 {
	if window <= 0 {
		window = unknownWindow
	}
	if maxOutput > window/2 {
		return min(maxTrigger, window/2)
	}
	return min(maxTrigger, window/100*fullPercent+window%100*fullPercent/100-max(maxOutput, 0))
}

// Used returns how many tokens of the window a request takes: the usage that the provider
// reported for the last answer in it, and an estimate of the steps after it. If nothing was
// reported since the last compaction, or a report that cannot be true, all of it is an
// estimate.
func Used(req *model.Request) int64 {
	first, last := reported(req.Steps)
	if last < 0 || !isPlausible(req, first, last) {
		return model.EstimateInput(req)
	}
	used := req.Steps[last].Usage.Context()
	if after := req.Steps[last+1:]; len(after) > 0 {
		used += model.EstimateInput(&model.Request{Steps: after})
	}
	return used
}

// reported returns the first and the last step since the last summary with a reported usage;
// -1: there is none.
func reported(steps []step.Step) (first, last int) {
	first, last = -1, -1
	for i := len(steps) - 1; i >= 0 && steps[i].Note != step.NoteSummary; i-- {
		if steps[i].Role != step.RoleAssistant || steps[i].Usage.Context() == 0 {
			continue
		}
		if first = i; last < 0 {
			last = i
		}
	}
	return first, last
}

const (
	// leastPercent is how much of our estimate a provider must report to be believed. Text
	// that its tokenizer takes for half as many tokens is rare; a server that reports only
	// what its cache does not have reports less.
	leastPercent = 50
	// leastGrowthPercent is the same of what came between two reports, and minGrowth how
	// many tokens that must be to be compared.
	leastGrowthPercent = 33
	minGrowth          = 500
)

// isPlausible reports whether the usage of the last answer can be true: it is not far below
// the estimate, and it grew with the session since the first report.
func isPlausible(req *model.Request, first, last int) bool {
	size, used := leastInput(req, last), req.Steps[last].Usage
	if inputOf(used) < size*leastPercent/100 {
		return false
	}
	before := req.Steps[first].Usage
	if first == last || before.ContextTokens > 0 || used.ContextTokens > 0 {
		return true
	}
	grown := size - leastInput(req, first)
	return grown < minGrowth || used.InputTokens-before.InputTokens >= grown*leastGrowthPercent/100
}

// inputOf returns the input of the last request of a usage.
func inputOf(u step.Usage) int64 {
	if u.ContextTokens > 0 {
		return u.ContextTokens // with the answer, because of several requests the output is a sum
	}
	return u.InputTokens
}

// leastInput estimates the input of the request that a step answered, without reasoning and
// other content that providers do not take again.
func leastInput(req *model.Request, answer int) int64 {
	steps := req.Steps[:answer]
	size := model.EstimateInput(&model.Request{System: req.System, Steps: steps, Tools: req.Tools})
	for i := range steps {
		for j := range steps[i].Parts {
			if p := &steps[i].Parts[j]; p.Kind != step.PartText {
				size -= tokensOf(p)
			}
		}
	}
	return size
}

// Exceeds reports whether a request, of which we estimate the size, does not fit a window
// together with its answer, which may be shorter than maxOutput.
func Exceeds(estimate, window, maxOutput int64) bool {
	if window <= 0 {
		window = unknownWindow
	}
	return estimate > max(window-max(maxOutput, 0), window/100*fullPercent)
}

// TriggerBelow returns how many tokens may be used after a request of so many was refused.
func TriggerBelow(refused int64) int64 { return refused * fullPercent / 100 }
