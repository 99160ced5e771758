package run

import (
	"slices"
	"strconv"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What a Run may use of tokens and money it shares with the child Runs that it
// asks for. Each is given a part when it is made, which is set aside whole until it
// has ended and its caller was charged for what it used. So whatever they do, all
// together keep the limits of the first.

// A purse is an amount of tokens and of money, in millionths of a US dollar.
type purse struct{ tokens, cost int64 }

// A shareVerdict says whether there is one.
type shareVerdict int

const (
	enough      shareVerdict = iota
	tooLittle                // less is left than it wants: it may begin with that
	nothingLeft              // and nobody will give any back
	notYet                   // others have theirs, and may give some of it back
)

// parts is into how many a limit is cut for agents that say nothing of their own:
// so several of them fit side by side, and their caller.
const parts = 4

// shareOf is what a child Run may use. Where its Agent says how much that is, it
// gets all of it, or waits while others are active; when none is, it begins with
// what is left. Zero is no limit.
func shareOf(w world, d delegation) (purse, shareVerdict) {
	whole, left := w.purse()
	var said v1alpha1.Limits
	if agent := w.wanted[d.Agent]; agent != nil {
		said = agent.Spec.Limits
	}
	own := snapshot.LimitsOf(said)
	if said.Tokens == nil {
		own.Tokens = 0
	}
	tokens, first := share(whole.tokens, left.tokens, own.Tokens)
	cost, second := share(whole.cost, left.cost, own.CostMicroUSD)
	verdict := max(first, second)
	others := slices.ContainsFunc(w.children, func(c v1alpha1.Run) bool { return !isOver(&c) })
	if others && verdict != enough {
		verdict = notYet // they may give some back
	}
	return purse{tokens, cost}, verdict
}

// share is a part of one amount, of which whole is the limit, 0 for none. One who
// wants 0 has not said how much.
func share(whole, left, wants int64) (int64, shareVerdict) {
	if whole == 0 {
		return 0, enough
	}
	if wants == 0 {
		wants = max(whole/parts, 1)
	}
	wants = min(wants, whole)
	switch {
	case left >= wants:
		return wants, enough
	case left <= 0:
		return 0, nothingLeft
	}
	return left, tooLittle
}

// purse is what a Run may use in all, and what of it neither it has used nor a
// child Run may yet.
func (w world) purse() (whole, left purse) {
	l := raised(w.limits().task, w.granted)
	whole = purse{l.Tokens, l.CostMicroUSD}
	left = whole
	if p := w.run.Status.Progress; p != nil {
		left = left.without(usedBy(p))
	}
	waitsFor := w.delegations(w.progress())
	for i := range w.children {
		child := &w.children[i]
		used := usedBy(child.Status.Progress)
		unheard := slices.ContainsFunc(waitsFor, func(d delegation) bool { return d.child == child })
		switch {
		case !isOver(child):
			l := snapshot.Lower(task.Limits{}, limitsSaid(child))
			left = left.without(purse{max(used.tokens, l.Tokens), max(used.cost, l.CostMicroUSD)})
		case unheard:
			left = left.without(used) // its caller was not charged yet
		}
	}
	return whole, left
}

func (p purse) without(used purse) purse {
	return purse{p.tokens - used.tokens, p.cost - used.cost}
}

func usedBy(p *v1alpha1.RunProgress) purse {
	if p == nil {
		return purse{}
	}
	out := purse{tokens: Charged(p.Usage.TotalTokens)}
	if p.Usage.CostMicroUSD != nil {
		out.cost = Charged(*p.Usage.CostMicroUSD)
	}
	return out
}

// maxCharged is far beyond what any Run uses: a sum of as many as one may have
// never overflows.
const maxCharged = 1 << 50

// Charged is a number of what a Run says that it used as it counts: never less
// than nothing, nor so much that sums overflow.
func Charged(n int64) int64 { return min(max(n, 0), maxCharged) }

func limitsSaid(run *v1alpha1.Run) v1alpha1.Limits {
	if run.Spec.Limits == nil {
		return v1alpha1.Limits{}
	}
	return *run.Spec.Limits
}

// maxMoney is the most that the API writes.
const maxMoney = 999_999_999_999

// limits are a share as a Run says it, with how deep its agents may go.
func (p purse) limits(depth int64) *v1alpha1.Limits {
	deep := int32(max(0, min(depth, maxDepth)))
	out := &v1alpha1.Limits{Depth: &deep}
	if p.tokens > 0 {
		tokens := v1alpha1.Tokens(strconv.FormatInt(p.tokens, 10))
		out.Tokens = &tokens
	}
	if p.cost > 0 {
		cost := v1alpha1.Money(task.Money(min(p.cost, maxMoney)))
		out.Cost = &cost
	}
	return out
}
