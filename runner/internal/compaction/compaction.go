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
// reported since the last compaction, all of it is an estimate.
func Used(req *model.Request) int64 {
	for i := len(req.Steps) - 1; i >= 0; i-- {
		s := &req.Steps[i]
		if s.Note == step.NoteSummary {
			break
		}
		used := s.Usage.Context()
		if s.Role != step.RoleAssistant || used == 0 {
			continue
		}
		if after := req.Steps[i+1:]; len(after) > 0 {
			used += model.EstimateInput(&model.Request{Steps: after})
		}
		return used
	}
	return model.EstimateInput(req)
}
