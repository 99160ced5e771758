// Package loopdetect finds out whether an agent repeats itself.
//
// It compares the last turns of a session, since the last message of a user or the last notice that the agent is stuck.
// Two calls are equal if the tool and the meaning of their arguments are equal; reasoning and the ids of calls do not
// count. The calls that a model makes in one turn are compared as a set.
//
// Three patterns look like a loop but do not count. A tool may report that work is still running ([step.Step.Pending]):
// calling it again is waiting, which the limits of the Run end. A call may fail again after another call succeeded,
// such as a test between edits. And calls may fail with different arguments, up to twelve times, when an agent guesses
// names.
package loopdetect

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Finding describes how an agent repeats itself.
type Finding struct {
	// Rule names the kind of repetition.
	Rule string
	// Times is how often it happened so far.
	Times int
	// What describes the repetition, for users and for the model.
	What string
}

const (
	repeatedFailures  = 6   // turns in which a tool fails, with calls that are repeated
	variedFailures    = 12  // turns in which a tool fails, with calls that differ
	maxTurns          = 30  // of the last turns that are examined
	maxUnorderedCalls = 32  // of one turn that are compared in any order: the effort grows with the square
	maxQuoted         = 120 // bytes that a Finding repeats of what the model wrote
)

// rules are evaluated in order; the first that is reached counts. The texts name, in this order, the
// times, the tools of the last turn and of the turn before, the last text, and the failing tool.
var rules = []struct {
	rule    string
	reached int
	count   func(*history) int
	text    string
}{
	{"SameResult", 4, func(h *history) int { return repeats(h.turns, 1, turn.same) }, "calling %[2]s gave the same result %[1]d times in a row, with the same arguments"},
	{"SameError", 3, func(h *history) int { return repeats(h.turns, 1, turn.sameFailure) }, "calling %[2]s failed %[1]d times in a row, with the same arguments"},
	{"Monologue", 3, func(h *history) int { return repeats(h.texts, 1, sameText) }, "the same was said %[1]d times in a row and nothing was done: %[4]q"},
	{"Alternating", 6, func(h *history) int { return repeats(h.turns, 2, turn.same) }, "calling %[3]s and %[2]s in turn gave the same results, %[1]d turns in all"},
	{"Compacting", 10, func(h *history) int { return h.summaries }, "the session was summarized %[1]d times in a row and nothing was done in between"},
	{"ToolFails", repeatedFailures, (*history).countFailures, "calling %[5]s failed in %[1]d turns in a row, and nothing else was achieved"},
}

// Find examines the end of a session, whose calls must have results.
func Find(steps []step.Step) (Finding, bool) {
	h := newHistory(steps)
	for _, r := range rules {
		if n := r.count(h); n >= r.reached {
			return Finding{r.rule, n, fmt.Sprintf(r.text, n, h.tools(0), h.tools(1), task.Cut(cmp.Or(h.texts...), maxQuoted), task.Cut(h.failing, maxQuoted))}, true
		}
	}
	return Finding{}, false
}

// A history is the part of a session that the rules examine.
type history struct {
	turns     []turn   // with calls, the last first
	texts     []string // without a call, after all turns, the last first
	summaries int      // with nothing between or after
	failing   string   // the tool with the most failures, once they were counted
}

// newHistory reads a session backward from its end to the last message of a user, or to the notice
// that the agent repeats itself.
func newHistory(steps []step.Step) *history {
	h := &history{turns: make([]turn, 0, maxTurns)}
	for h.summaries < len(steps) && steps[len(steps)-1-h.summaries].Note == step.NoteSummary {
		h.summaries++
	}
	end := len(steps) // the results of an assistant's step are those up to here
	for i := len(steps) - 1; i >= 0 && !isBoundary(&steps[i]) && len(h.turns) < maxTurns; i-- {
		s := &steps[i]
		if len(s.Calls) > 0 {
			h.turns = append(h.turns, newTurn(s.Calls, steps[i+1:end]))
		} else if s.Role == step.RoleAssistant && len(h.turns) == 0 {
			h.texts = append(h.texts, s.Text())
		}
		if s.Role != step.RoleTool {
			end = i
		}
	}
	return h
}

func isBoundary(s *step.Step) bool {
	return s.Role == step.RoleUser && (s.Note == "" || s.Note == step.NoteMessage || s.Note == step.NoteStuck)
}

// repeats counts the last elements that each equal the element one period before, and the elements of the first cycle.
// Without a repetition it returns the period, which no rule reaches.
func repeats[T any](last []T, period int, same func(a, b T) bool) int {
	n := 0
	for n+period < len(last) && same(last[n], last[n+period]) {
		n++
	}
	return n + period
}

// sameText reports whether two texts are equal. Empty texts are no monologue.
func sameText(a, b string) bool { return a != "" && a == b }

// countFailures finds the tool with the most turns in which it failed since its last success, or since any other
// success: repeated calls, or too many guesses. A turn with six failures counts as one.
func (h *history) countFailures() int {
	vain, most := 0, 0 // vain turns have no success that no earlier turn has had
	for vain < len(h.turns) && !h.turns[vain].achieves(h.turns[vain+1:]) {
		vain++
	}
	for _, tool := range slices.Concat(h.turns[:vain]...).tools() {
		if n := failures(h.turns[:vain], tool); n > most {
			most, h.failing = n, tool
		}
	}
	return most
}

// achieves reports whether a turn has a success that no earlier turn has had: a file was changed, or
// something was learned.
func (t turn) achieves(earlier []turn) bool {
	return slices.ContainsFunc(t, func(o *outcome) bool {
		known := func(e turn) bool { return e.has(o, sameOutcome) }
		return !o.result.IsError && !o.result.Pending && !slices.ContainsFunc(earlier, known)
	})
}

// failures counts the turns in which a tool failed, back to its last success; 0 if they are too few.
func failures(turns []turn, tool string) int {
	n, different := 0, turn{}
	for _, t := range turns {
		calls := slices.DeleteFunc(slices.Clone(t), func(o *outcome) bool { return o.call.Name != tool })
		if slices.ContainsFunc(calls, func(o *outcome) bool { return !o.result.IsError }) {
			break
		}
		for _, o := range calls {
			if !different.has(o, sameCall) {
				different = append(different, o)
			}
		}
		n += min(1, len(calls))
	}
	if n >= variedFailures || n >= repeatedFailures && 2*len(different) <= n {
		return n
	}
	return 0
}

// tools returns the names of the tools of one of the last turns, for messages.
func (h *history) tools(i int) string {
	if i >= len(h.turns) {
		return ""
	}
	return task.Cut(strings.Join(h.turns[i].tools(), ", "), maxQuoted)
}

// A turn is the calls of one answer of the model with their results.
type turn []*outcome

type outcome struct {
	call      *step.Call
	result    *step.Step
	canonical []byte // the arguments, once they were compared
}

// newTurn pairs calls with their results. A call without a result is left out.
func newTurn(calls []step.Call, results []step.Step) turn {
	t := make(turn, 0, len(calls))
	for i := range calls {
		if at := slices.IndexFunc(results, func(r step.Step) bool { return r.CallID == calls[i].ID }); at >= 0 {
			t = append(t, &outcome{call: &calls[i], result: &results[at]})
		}
	}
	return t
}

// same reports whether two turns have equal calls with equal results. Polling of running work is not a repetition.
func (t turn) same(other turn) bool {
	return !slices.ContainsFunc(t, func(o *outcome) bool { return o.result.Pending }) && t.matches(other, sameOutcome)
}

// sameFailure reports whether all calls of two turns failed and are equal.
func (t turn) sameFailure(other turn) bool {
	return t.matches(other, func(a, b *outcome) bool { return a.result.IsError && b.result.IsError && sameCall(a, b) })
}

func (t turn) has(o *outcome, like func(a, b *outcome) bool) bool {
	return slices.ContainsFunc(t, func(other *outcome) bool { return like(o, other) })
}

// matches compares the outcomes of two turns as sets.
func (t turn) matches(other turn, like func(a, b *outcome) bool) bool {
	if len(t) != len(other) || len(t) == 0 || len(t) > maxUnorderedCalls {
		return len(t) > 0 && slices.EqualFunc(t, other, like)
	}
	within := func(a, b turn) bool {
		return !slices.ContainsFunc(a, func(o *outcome) bool { return !b.has(o, like) })
	}
	return within(t, other) && within(other, t)
}

// tools returns the names of the tools of a turn, each once.
func (t turn) tools() []string {
	names := make([]string, len(t))
	for i, o := range t {
		names[i] = o.call.Name
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// sameOutcome compares files by their bytes, because the text beside two different screenshots may be equal.
func sameOutcome(a, b *outcome) bool {
	return a.result.IsError == b.result.IsError && slices.EqualFunc(a.result.Parts, b.result.Parts, samePart) && sameCall(a, b)
}

func samePart(a, b step.Part) bool {
	return a.Kind == b.Kind && a.Text == b.Text && (a.File == nil) == (b.File == nil) && (a.File == nil || a.File.Digest == b.File.Digest)
}

// sameCall compares the meaning of arguments, not how they are written.
func sameCall(a, b *outcome) bool {
	return a.call.Name == b.call.Name && (bytes.Equal(a.call.Args, b.call.Args) || bytes.Equal(a.args(), b.args()))
}

// args returns the canonical arguments or, without them, the original ones.
func (o *outcome) args() []byte {
	if o.canonical == nil {
		o.canonical = o.call.Args
		if canonical, err := digest.Canonical(o.call.Args); err == nil {
			o.canonical = canonical
		}
	}
	return o.canonical
}
