package compaction

import (
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

const (
	// most is how much of even the largest window is used: beyond it models read
	// less well, and every turn costs more.
	most = 170_000
	// fullPercent is how much of a window the input and the answer may take.
	fullPercent = 85
	// unknownWindow is assumed of a model that nothing is known of.
	unknownWindow = 128_000
)

// Trigger is how many tokens of a window may be used before it is time to
// compact, where an answer may have up to maxOutput. When answers may take most
// of the window, they get half of it.
func Trigger(window, maxOutput int64) int64 {
	if window <= 0 {
		window = unknownWindow
	}
	if maxOutput > window/2 {
		return min(most, window/2)
	}
	return min(most, window/100*fullPercent+window%100*fullPercent/100-max(maxOutput, 0))
}

// Used is how many tokens of the window a request takes: what the provider told
// of the last answer in it, and an estimate of what came after. Where nothing
// was told since the last compaction it is an estimate of everything.
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
