package workflowrun

import (
	"fmt"
	"strconv"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/run"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A dimension is one of the things that are limited.
type dimension int

const (
	bySteps dimension = iota
	byTokens
	byCost
	byDuration
	dimensions
)

// usedUp are the reasons of a limit that is reached.
var usedUp = [dimensions]string{
	bySteps:    v1alpha1.ReasonStepLimit,
	byTokens:   v1alpha1.ReasonTokenLimit,
	byCost:     v1alpha1.ReasonCostLimit,
	byDuration: v1alpha1.ReasonDurationLimit,
}

// fields are what the limits are called, and how an amount of each reads.
var fields = [dimensions]struct {
	name string
	text func(int64) string
}{
	bySteps:    {"limits.steps", number},
	byTokens:   {"limits.tokens", number},
	byCost:     {"limits.cost", task.Money},
	byDuration: {"limits.duration", func(n int64) string { return (time.Duration(n) * time.Second).String() }},
}

func number(n int64) string { return strconv.FormatInt(n, 10) }

// most is the most that the limits of a Run can say.
var most = [dimensions]int64{bySteps: 10_000, byTokens: 999_999_999_999, byCost: 999_999_999_999, byDuration: 720 * 3600}

// amounts are one number for each dimension. Of limits 0 means none.
type amounts [dimensions]int64

// lowest is the lower of two limits, each for itself.
func lowest(a, b amounts) amounts {
	for d := range dimensions {
		if a[d] == 0 || b[d] != 0 && b[d] < a[d] {
			a[d] = b[d]
		}
	}
	return a
}

// limitsOf are the limits that a Run says; nil: none.
func limitsOf(l *v1alpha1.Limits) amounts {
	if l == nil {
		return amounts{}
	}
	lowered := snapshot.Lower(task.Limits{}, *l)
	return amounts{lowered.Steps, lowered.Tokens, lowered.CostMicroUSD, lowered.DurationSeconds}
}

// wholeOf are the limits that a Workflow says; nil: none.
func wholeOf(l *v1alpha1.WorkflowLimits) amounts {
	if l == nil {
		return amounts{}
	}
	return limitsOf(&v1alpha1.Limits{Steps: l.Steps, Tokens: l.Tokens, Cost: l.Cost, Duration: l.Duration})
}

// finallyDuration is how long finally has, unless it is said: where nothing limits
// the whole, each node of it.
const finallyDuration = int64(10 * time.Minute / time.Second)

// share is the part of what is limited that finally has, unless it is said.
const share = 10

// forFinally is what finally has: what is said, else 10 minutes, half of the whole
// at most or, without one, for each node, and a tenth of the rest. It is never more than the whole, which a Run
// may have lowered below what its Workflow says for finally.
func forFinally(whole amounts, spec v1alpha1.WorkflowSpec) amounts {
	out := wholeOf(spec.FinallyLimits)
	for d := range dimensions {
		switch {
		case out[d] > 0 && whole[d] > 0:
			out[d] = min(out[d], whole[d])
		case out[d] > 0:
		case d == byDuration && whole[d] > 0:
			out[d] = max(1, min(finallyDuration, whole[d]/2))
		case d == byDuration:
			out[d] = finallyDuration * int64(max(1, len(spec.Finally)))
		case whole[d] > 0:
			out[d] = max(1, whole[d]/share)
		}
	}
	return out
}

// wantedBy is what a node may use of a purse at most: where nobody says how long
// finally has, each node of it has its own part, and takes none of another's.
func wantedBy(w world, main *purse, n v1alpha1.Node) amounts {
	want := lowest(ofTarget(w, string(n.Agent), string(n.Workflow)), limitsOf(n.Limits))
	if w.final(n.Name) && !main.bounded[byDuration] && wholeOf(w.version.Spec.FinallyLimits)[byDuration] == 0 {
		return lowest(want, amounts{byDuration: finallyDuration})
	}
	return want
}

// used is what a child has used. Where nobody knows what something cost, it is
// what was set aside for it.
func used(c *v1alpha1.Run, aside amounts) amounts {
	p := c.Status.Progress
	if p == nil {
		return amounts{}
	}
	out := spentOf(p)
	if p.Usage.CostMicroUSD == nil && out[byTokens] > 0 {
		out[byCost] = aside[byCost]
	}
	return out
}

// spentOf is what a progress tells of what is limited, whoever wrote it: never
// less than nothing, nor more than adds up.
func spentOf(p *v1alpha1.RunProgress) amounts {
	out := amounts{p.Counts.Steps, p.Usage.TotalTokens, 0, p.Usage.DurationSeconds}
	if p.Usage.CostMicroUSD != nil {
		out[byCost] = *p.Usage.CostMicroUSD
	}
	for d := range dimensions {
		out[d] = run.Charged(out[d])
	}
	return out
}

// A purse is what some of the nodes may use, all together.
type purse struct {
	limit   amounts
	bounded [dimensions]bool
	used    amounts // by children that have ended
	aside   amounts // for those that work
	active  int
}

// pay counts a child.
func (p *purse) pay(c *v1alpha1.Run, aside amounts) {
	spent := used(c, aside)
	if !finished(c) {
		p.active++
	}
	for d := range dimensions {
		switch {
		case finished(c):
			p.used[d] += spent[d]
		case aside[d] == 0: // it has no limit of its own: it may take all
			p.aside[d] += max(p.limit[d], 0)
		default:
			p.aside[d] += max(aside[d], spent[d])
		}
	}
}

// left is what may still be set aside.
func (p *purse) left(d dimension) int64 { return max(0, p.limit[d]-p.used[d]-p.aside[d]) }

// empty is the reason of a limit that is used up; empty: none is.
func (p *purse) empty() (dimension, bool) {
	for d := range dimensions {
		if p.bounded[d] && p.used[d] >= p.limit[d] {
			return d, true
		}
	}
	return 0, false
}

// set sets aside what a child wants, or what is left where nobody else works;
// false: too little is left, or nothing.
func (p *purse) set(want amounts) (grant amounts, enough bool) {
	grant = want
	for d := range dimensions {
		if !p.bounded[d] {
			continue
		}
		left := p.left(d)
		short := want[d] == 0 || want[d] > left
		if left == 0 || short && p.active > 0 {
			return grant, false
		}
		if short {
			grant[d] = left
		}
		grant[d] = min(grant[d], most[d])
	}
	for d := range dimensions {
		p.aside[d] += grant[d]
	}
	p.active++
	return grant, true
}

// limited are the limits of a child: those of its node, and what was set aside
// for it.
func (p *purse) limited(node *v1alpha1.Limits, grant amounts) *v1alpha1.Limits {
	out := node.DeepCopy()
	for d := range dimensions {
		if !p.bounded[d] {
			continue
		}
		if out == nil {
			out = &v1alpha1.Limits{}
		}
		limit(out, d, grant[d])
	}
	return out
}

// limit writes one limit.
func limit(l *v1alpha1.Limits, d dimension, n int64) {
	switch d {
	case bySteps:
		steps := int32(n) //nolint:gosec // at most 10,000
		l.Steps = &steps
	case byTokens:
		tokens := v1alpha1.Tokens(strconv.FormatInt(n, 10))
		l.Tokens = &tokens
	case byCost:
		cost := v1alpha1.Money(task.Money(n))
		l.Cost = &cost
	default:
		duration := v1alpha1.Duration(fmt.Sprintf("%ds", n))
		l.Duration = &duration
	}
}
