// Package compaction keeps a session within a model's context window. It only computes: how full the window is (Used),
// above which size a session is compacted (Trigger), what to hide (Plan), and the session after that (Apply). The loop
// executes and records it. Nothing here changes the given steps.
package compaction

import (
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

const (
	// maxTrigger is how much of even the largest window is used: beyond it models read
	// less well, and every turn costs more.
	maxTrigger = 170_000
	// fullPercent is how much of a window the input and the answer may take.
	fullPercent = 85
	// unknownWindow is the window of an unknown model.
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

// Used returns how many tokens of the window a request takes: the reported usage of the last answer in it, plus an
// estimate of the steps after that. Everything is estimated if nothing was reported since the last compaction, or if a
// report is implausible.
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
	// leastPercent is how much of our estimate a provider must report for its report to count. Text with half as many
	// tokens as we estimate is rare; a server that leaves out cached tokens reports less.
	leastPercent = 50
	// leastGrowthPercent is the same for the growth between two reports, and minGrowth the smallest growth in tokens
	// that is compared.
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

// Exceeds reports whether a request of an estimated size does not fit the window together with its answer. The answer
// may be shorter than maxOutput.
func Exceeds(estimate, window, maxOutput int64) bool {
	if window <= 0 {
		window = unknownWindow
	}
	return estimate > max(window-max(maxOutput, 0), window/100*fullPercent)
}

// TriggerBelow returns the trigger after a request of that size was refused.
func TriggerBelow(refused int64) int64 { return refused * fullPercent / 100 }

// The texts that replace removed content. They are part of recorded sessions: if one changes,
// a resumed session no longer matches the provider's cache.
const (
	clearedText   = "(old result removed to make room; call again if it is needed)"
	summaryPrefix = "(The steps that were here are removed to make room. This is a summary of them, which you wrote yourself.)\n\n"
)

// SummaryPrompt asks the model for a summary, as the next message of the user. The summary then replaces the session.
const SummaryPrompt = `The session is about to become too long. Everything between the first message and the last few steps will be removed and replaced by what you answer now. You, or another model, will go on from it and will know nothing else of what was removed. If there is an earlier summary, it is removed too: carry over what still matters.

Answer with the summary only, as text. Do not call a tool, do not go on with the work and do not address anyone.

Write under these headings, in short sentences, and leave out a heading that has nothing under it:

Goal: what was asked for, with every condition and preference that was named, in the words that were used where those matter.
Decisions: what was decided and why, also what was tried and given up, so that it is not tried again.
Done: what was done so far, each with the names of the files, commands, addresses and tools involved, and the result.
Open: what is left to do, in order, and exactly where the work stopped.
Facts: what has to be known to go on: paths, names, identifiers, numbers, formats, error messages, what people answered. Copy them exactly; a fact that is not here is lost.

Never write down a password, key or token.`

const (
	// keptSteps is how many of the last steps always stay.
	keptSteps = 6
	// minFreed is how many tokens clearing must free: less is not worth the prompt
	// cache that it costs.
	minFreed = 20_000
	// clearedPercent is how much of the trigger may be used after clearing; with
	// more, the next compaction would come too soon.
	clearedPercent = 70
)

// A Cut is what a compaction removes or clears.
type Cut struct {
	// Through is the last step that is removed or cleared; the first user's step never is.
	Through int64
	// Clear removes only tool results; otherwise a summary replaces the steps.
	Clear bool
}

// Plan returns what to remove from a session that uses a number of tokens; trigger is the maximum. The first message of
// the user and the last six steps stay, and calls stay together with their results. It returns false if there is
// nothing to remove.
func Plan(visible []step.Step, used, trigger int64) (Cut, bool) {
	first, tail := bounds(visible)
	head := visible[first:tail]
	if !slices.ContainsFunc(head, func(s step.Step) bool { return s.Note != step.NoteSummary }) {
		return planLatestTurn(visible, first) // a summary of a summary makes no room
	}
	through := head[len(head)-1].Seq
	freed := freedTokens(head)
	if freed >= minFreed && used-freed <= trigger/100*clearedPercent {
		return Cut{Through: through, Clear: true}, true
	}
	return Cut{Through: through}, true
}

// planLatestTurn clears the first results of a turn with more results than are kept: many
// calls at once can fill a window.
func planLatestTurn(visible []step.Step, first int) (Cut, bool) {
	end := len(visible) - keptSteps
	if end <= first || freedTokens(visible[first:end]) < minFreed {
		return Cut{}, false
	}
	return Cut{Through: visible[end-1].Seq, Clear: true}, true
}

// PlanRefused returns what to remove from a session that the provider refused. It clears
// results if that is enough, because the request for a summary would be refused, too, and
// removes more than Plan if Plan removes nothing.
func PlanRefused(visible []step.Step, used, trigger int64) (Cut, bool) {
	cut, ok := Plan(visible, used, trigger)
	if !ok {
		return PlanTighter(visible)
	}
	first, tail := bounds(visible)
	if freed := freedTokens(visible[first:tail]); freed > 0 && used-freed <= trigger {
		cut.Clear = true
	}
	return cut, true
}

// PlanTighter returns what to remove if a session is too long even after Plan: everything before the last turn, or
// otherwise the first half of that turn's results. Calls stay together with their results. It returns false if there is
// nothing to remove.
func PlanTighter(visible []step.Step) (Cut, bool) {
	first, last := leadingSteps(visible), len(visible)-1
	for last > first && visible[last].Role != step.RoleAssistant {
		last--
	}
	if last <= first {
		return planResults(visible, first)
	}
	head := visible[first:last]
	through := head[len(head)-1].Seq
	switch {
	case slices.ContainsFunc(head, func(s step.Step) bool { return clearable(&s) }):
		return Cut{Through: through, Clear: true}, true
	case slices.ContainsFunc(head, func(s step.Step) bool { return s.Note != step.NoteSummary }):
		return Cut{Through: through}, true
	}
	return planResults(visible, last)
}

// planResults clears the first half of the results behind a step. The last result stays: the
// model has not read it.
func planResults(visible []step.Step, from int) (Cut, bool) {
	var results []int
	for i := from; i < len(visible); i++ {
		if clearable(&visible[i]) {
			results = append(results, i)
		}
	}
	if len(results) < 2 {
		return Cut{}, false
	}
	return Cut{Through: visible[results[len(results)/2-1]].Seq, Clear: true}, true
}

// freedTokens returns how many tokens clearing steps frees.
func freedTokens(steps []step.Step) (freed int64) {
	for i := range steps {
		freed += freedByClearing(&steps[i])
	}
	return freed
}

// bounds returns the range of the steps that may be removed.
func bounds(visible []step.Step) (first, tail int) {
	first = leadingSteps(visible)
	tail = max(len(visible)-keptSteps, first)
	for tail > first && visible[tail].Role == step.RoleTool {
		tail--
	}
	return first, tail
}

// leadingSteps returns the number of steps up to the first user's, inclusive.
func leadingSteps(visible []step.Step) int {
	return slices.IndexFunc(visible, func(s step.Step) bool { return s.Role == step.RoleUser }) + 1
}

// freedByClearing returns how many tokens clearing a step frees.
func freedByClearing(s *step.Step) int64 {
	if !clearable(s) {
		return 0
	}
	freed := model.EstimateTokens(size(s)) - model.EstimateTokens(len(clearedText))
	for i := range s.Parts {
		if f := s.Parts[i].File; f != nil {
			freed += model.EstimateFile(f)
		}
	}
	return freed
}

// clearable reports whether a step is a tool result that is longer than clearedText, or has an
// image or a document.
func clearable(s *step.Step) bool {
	return s.Role == step.RoleTool && (size(s) > len(clearedText) || s.HasFiles())
}

// tokensOf returns how many tokens a part is.
func tokensOf(p *step.Part) int64 {
	tokens := model.EstimateTokens(len(p.Text) + len(p.Provider))
	if p.File != nil {
		tokens += model.EstimateFile(p.File)
	}
	return tokens
}

func size(s *step.Step) int {
	n := 0
	for i := range s.Parts {
		n += len(s.Parts[i].Text) + len(s.Parts[i].Provider)
	}
	return n
}

// Apply returns a new session after a cut. Its steps have no Usage, because that describes requests before the cut.
// Applying the same cut again changes nothing.
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
			Parts: []step.Part{{Kind: step.PartText, Text: summaryPrefix + summary}},
		})
	}
	return clearUsage(append(after, visible[tail:]...))
}

// clearThrough returns the session with the results up to a step cleared.
func clearThrough(visible []step.Step, through int64) []step.Step {
	after := slices.Clone(visible)
	for i := range after {
		if after[i].Seq <= through && clearable(&after[i]) {
			after[i].Parts = []step.Part{{Kind: step.PartText, Text: clearedText}}
		}
	}
	return clearUsage(after)
}

// clearUsage removes the usage of the steps, in place.
func clearUsage(steps []step.Step) []step.Step {
	for i := range steps {
		steps[i].Usage = step.Usage{}
	}
	return steps
}

// shrinkPercent is the percentage of results that each level clears.
var shrinkPercent = []int{0, 10, 20, 50, 100}

// ShrinkLevels is how many levels Shrink has; the last takes every result.
const ShrinkLevels = 5

// Shrink returns a session with some tool results cleared, beginning in the middle: from level 0 up, 0, 10, 20, 50 and
// 100 percent of them. It is for a session that is too long even to be summarized. It returns the same session if there
// is nothing to clear.
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
		after[i].Parts = []step.Part{{Kind: step.PartText, Text: clearedText}}
	}
	return clearUsage(after)
}
