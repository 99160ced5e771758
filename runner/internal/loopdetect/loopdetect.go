package loopdetect

import (
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Finding describes how an agent repeats itself.
type Finding struct {
	Rule Rule
	// Times is how often it happened so far.
	Times int
	// What is a description for users and for the model.
	What string
}

// A Rule names one kind of repetition.
type Rule string

// The kinds of repetition.
const (
	SameResult  Rule = "SameResult"  // the same calls have the same results
	SameError   Rule = "SameError"   // the same calls fail, in whatever way
	Monologue   Rule = "Monologue"   // the same is said again and nothing is done
	Alternating Rule = "Alternating" // two turns take turns
	Compacting  Rule = "Compacting"  // summary follows summary
	ToolFails   Rule = "ToolFails"   // one tool fails, and nothing else is achieved
)

// The thresholds of the rules.
const (
	sameResults      = 4
	sameErrors       = 3
	monologues       = 3
	alternating      = 6
	compactions      = 10
	repeatedFailures = 6  // turns, with calls that are repeated
	variedFailures   = 12 // turns, with calls that differ
)

// maxTurns is how many of the last turns are examined.
const maxTurns = 30

// rules are evaluated in order; the first finding counts.
var rules = []func(*history) (Finding, bool){findSameResult, findSameError, findMonologue, findAlternating, findCompacting, findToolFails}

// Find examines the end of a session, whose calls must have results.
func Find(steps []step.Step) (Finding, bool) {
	p := newHistory(steps)
	for _, rule := range rules {
		if f, found := rule(p); found {
			return f, true
		}
	}
	return Finding{}, false
}

func findSameResult(p *history) (Finding, bool) {
	n := p.repeats(1, turn.same)
	if n < sameResults {
		return Finding{}, false
	}
	return Finding{SameResult, n, fmt.Sprintf("calling %s gave the same result %d times in a row, with the same arguments", p.turns[0].names(), n)}, true
}

func findSameError(p *history) (Finding, bool) {
	n := p.repeats(1, func(a, b turn) bool { return a.failed() && b.failed() && a.sameCalls(b) })
	if n < sameErrors {
		return Finding{}, false
	}
	return Finding{SameError, n, fmt.Sprintf("calling %s failed %d times in a row, with the same arguments", p.turns[0].names(), n)}, true
}

func findMonologue(p *history) (Finding, bool) {
	if p.textCount < monologues {
		return Finding{}, false
	}
	return Finding{Monologue, p.textCount, fmt.Sprintf("the same was said %d times in a row and nothing was done: %q", p.textCount, cut(p.lastText))}, true
}

func findAlternating(p *history) (Finding, bool) {
	n := p.repeats(2, turn.same)
	if n < alternating {
		return Finding{}, false
	}
	return Finding{Alternating, n, fmt.Sprintf("calling %s and %s in turn gave the same results, %d turns in all", p.turns[1].names(), p.turns[0].names(), n)}, true
}

func findCompacting(p *history) (Finding, bool) {
	if p.summaries < compactions {
		return Finding{}, false
	}
	return Finding{Compacting, p.summaries, fmt.Sprintf("the session was summarized %d times in a row and nothing was done in between", p.summaries)}, true
}

// A streak counts the consecutive turns in which a tool failed.
type streak struct {
	turns int
	calls []*step.Call // each once
}

// long reports whether a streak is one of failures that repeat themselves, or of
// too many guesses.
func (s *streak) long() bool {
	return s.turns >= variedFailures || s.turns >= repeatedFailures && 2*len(s.calls) <= s.turns
}

func (s *streak) add(c *step.Call) {
	if !slices.ContainsFunc(s.calls, func(other *step.Call) bool { return sameCall(c, other) }) {
		s.calls = append(s.calls, c)
	}
}

// findToolFails counts, for each tool, the turns in which it failed since it last
// succeeded, or since anything was achieved. A turn that tries six things at once
// counts as one.
func findToolFails(p *history) (Finding, bool) {
	streaks, over := map[string]*streak{}, map[string]bool{}
	for i, t := range p.turns {
		if p.hasNewSuccess(i) {
			break
		}
		for _, o := range t {
			over[o.call.Name] = over[o.call.Name] || !o.result.IsError
		}
		addFailures(streaks, t, over)
	}
	worst, s := longestStreak(streaks)
	if s == nil {
		return Finding{}, false
	}
	return Finding{ToolFails, s.turns, fmt.Sprintf("calling %s failed in %d turns in a row, and nothing else was achieved", cut(worst), s.turns)}, true
}

// addFailures adds a turn to the streaks of the tools that failed in it, but for
// those whose streaks are over.
func addFailures(streaks map[string]*streak, t turn, over map[string]bool) {
	for i, o := range t {
		if over[o.call.Name] {
			continue
		}
		s := streaks[o.call.Name]
		if s == nil {
			s = &streak{}
			streaks[o.call.Name] = s
		}
		s.add(o.call)
		if !calls(t[:i], o.call.Name) {
			s.turns++
		}
	}
}

// calls reports whether a turn calls a tool.
func calls(t turn, name string) bool {
	return slices.ContainsFunc(t, func(o outcome) bool { return o.call.Name == name })
}

// longestStreak returns the tool with the longest streak over a threshold.
func longestStreak(streaks map[string]*streak) (string, *streak) {
	worst, longest := "", (*streak)(nil)
	for name, s := range streaks {
		if s.long() && (longest == nil || s.turns > longest.turns || s.turns == longest.turns && name < worst) {
			worst, longest = name, s
		}
	}
	return worst, longest
}
