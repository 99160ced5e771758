package compaction

import (
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

const (
	// keep is how many of the last steps always stay.
	keep = 6
	// worth is how many tokens clearing must free: less is not worth the prompt
	// cache that it costs.
	worth = 20_000
	// clearedPercent is how much of the trigger may be used after clearing; with
	// more, the next compaction would come too soon.
	clearedPercent = 70
)

// A Cut is what a compaction takes out of the model's sight.
type Cut struct {
	// Through is the last step that the cut is about; the first user's step never
	// is.
	Through int64
	// Clear takes only the results of tools out; else the steps themselves go, and
	// a summary stands for them.
	Clear bool
}

// Plan says what to take out of a session that uses so many tokens, where the
// trigger is how many it may use. The first user's step and the last six stay,
// and with them what belongs to them: a call is never parted from its results.
// It is false when there is nothing left to take.
func Plan(visible []step.Step, used, trigger int64) (Cut, bool) {
	first, tail := bounds(visible)
	head := visible[first:tail]
	if !slices.ContainsFunc(head, func(s step.Step) bool { return s.Note != step.NoteSummary }) {
		return within(visible, first) // a summary of a summary makes no room
	}
	through := head[len(head)-1].Seq
	freed := gains(head)
	if freed >= worth && used-freed <= trigger/100*clearedPercent {
		return Cut{Through: through, Clear: true}, true
	}
	return Cut{Through: through}, true
}

// within clears the first results of a turn that is larger than what is kept: so
// many calls at once can fill a window by themselves.
func within(visible []step.Step, first int) (Cut, bool) {
	end := len(visible) - keep
	if end <= first || gains(visible[first:end]) < worth {
		return Cut{}, false
	}
	return Cut{Through: visible[end-1].Seq, Clear: true}, true
}

// gains is how many tokens clearing steps frees.
func gains(steps []step.Step) (freed int64) {
	for i := range steps {
		freed += gain(&steps[i])
	}
	return freed
}

// bounds says where in a session that begins which may go, and where it ends.
func bounds(visible []step.Step) (first, tail int) {
	first = leadingSteps(visible)
	tail = max(len(visible)-keep, first)
	for tail > first && visible[tail].Role == step.RoleTool {
		tail--
	}
	return first, tail
}

// leadingSteps is the number of steps up to and with the first user's.
func leadingSteps(visible []step.Step) int {
	return slices.IndexFunc(visible, func(s step.Step) bool { return s.Role == step.RoleUser }) + 1
}

// gain is how many tokens clearing a step frees.
func gain(s *step.Step) int64 {
	if !clearable(s) {
		return 0
	}
	return model.EstimateTokens(size(s)) - model.EstimateTokens(len(cleared))
}

// clearable says whether a step is a result that is longer than what would
// stand for it. One that was cleared before is not.
func clearable(s *step.Step) bool {
	return s.Role == step.RoleTool && size(s) > len(cleared)
}

func size(s *step.Step) int {
	n := 0
	for i := range s.Parts {
		n += len(s.Parts[i].Text) + len(s.Parts[i].Provider)
	}
	return n
}

// Apply is the session after a cut. What it returns is new; a step of it has no
// Usage, because what was reported before a cut says nothing of what is sent
// after it. The same cut again changes nothing.
func Apply(visible []step.Step, c Cut, summary string) []step.Step {
	if c.Clear {
		return clearThrough(visible, c.Through)
	}
	first := leadingSteps(visible)
	tail := first
	for tail < len(visible) && (visible[tail].Seq <= c.Through || tail > first && visible[tail].Role == step.RoleTool) {
		tail++
	}
	after := make([]step.Step, 0, len(visible)-(tail-first)+1)
	after = append(after, visible[:first]...)
	if tail > first {
		after = append(after, step.Step{
			Seq: c.Through, Role: step.RoleUser, Note: step.NoteSummary, Scope: visible[tail-1].Scope,
			Parts: []step.Part{{Kind: step.PartText, Text: summaryOpens + summary}},
		})
	}
	return forget(append(after, visible[tail:]...))
}

// clearThrough is the session with the results up to a step cleared.
func clearThrough(visible []step.Step, through int64) []step.Step {
	after := slices.Clone(visible)
	for i := range after {
		if after[i].Seq <= through && clearable(&after[i]) {
			after[i].Parts = []step.Part{{Kind: step.PartText, Text: cleared}}
		}
	}
	return forget(after)
}

// forget takes out what was reported of the steps, in place.
func forget(steps []step.Step) []step.Step {
	for i := range steps {
		steps[i].Usage = step.Usage{}
	}
	return steps
}

// shrinkPercent is how much of the results goes, level by level.
var shrinkPercent = []int{0, 10, 20, 50, 100}

// ShrinkLevels is how many levels Shrink has; the last takes every result.
const ShrinkLevels = 5

// Shrink is a session with some results of tools cleared, those in the middle
// first: 0, 10, 20, 50 and 100 percent of them, from level 0 up. It is for a
// session that is too long even to be summarized. What it returns is new, or
// the session itself when there is nothing to clear.
func Shrink(steps []step.Step, level int) []step.Step {
	var results []int
	for i := range steps {
		if clearable(&steps[i]) {
			results = append(results, i)
		}
	}
	percent := shrinkPercent[min(max(level, 0), ShrinkLevels-1)]
	n := (len(results)*percent + 99) / 100
	if n == 0 {
		return steps
	}
	after := slices.Clone(steps)
	from := (len(results) - n) / 2
	for _, i := range results[from : from+n] {
		after[i].Parts = []step.Part{{Kind: step.PartText, Text: cleared}}
	}
	return forget(after)
}
