package run

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// An Agent may bound how many of its Runs are active. A Run's turn comes with its
// first attempt, and it keeps it until it ends: while people are asked, between
// attempts and while it is paused too. Only while it waits for child Runs it gives
// its turn away, and takes it back without waiting, or two Runs that wait for each
// other's children would wait for ever. For the same reason the turns of those
// that a Run is a part of do not count for it. What is paused before it began does
// not stand in the queue.

// A standing is what a Run is to the queue of its Agent.
type standing int

const (
	standsAside standing = iota // it has no part in it
	standsInLine
	hasItsTurn
)

func standingOf(run *v1alpha1.Run) standing {
	switch {
	case run.Status.CompletionTime != nil:
		return standsAside
	case run.Status.Attempt != nil && awaitsChild(run):
		return standsAside
	case run.Status.Attempt != nil:
		return hasItsTurn
	case !run.DeletionTimestamp.IsZero(), run.Spec.DesiredState == v1alpha1.DesiredPaused, run.Spec.DesiredState == v1alpha1.DesiredStopped:
		return standsAside
	}
	if _, is := runstatus.Restored(run); is {
		return standsAside
	}
	return standsInLine
}

// awaitsChild says whether all that a Run does is to wait for child Runs, with a
// pod or without.
func awaitsChild(run *v1alpha1.Run) bool {
	a, p := run.Status.Attempt, run.Status.Progress
	return a != nil && p != nil && p.Attempt == a.Number && p.State == v1alpha1.ReasonAwaitingChild
}

// A candidate is a Run of an Agent whose Runs are bounded.
type candidate struct {
	uid      types.UID
	name     string
	created  time.Time
	standing standing
	above    []types.UID // the Runs that it is a part of
}

// A turn is where a Run stands. The zero one is that of a Run whose Agent has no
// bound.
type turn struct {
	limit  int32 // of active Runs; 0: none
	active int   // others, but those that it is a part of
	place  int   // in the queue, from 1; 0: its turn has come
}

// turnsOf are the turns of all that stand in line. Those that are a part of a Run
// which has a turn come first: it has its turn for them too.
func turnsOf(all []candidate, limit int32) map[types.UID]turn {
	having := map[types.UID]bool{}
	var line []candidate
	for _, c := range all {
		switch c.standing {
		case hasItsTurn:
			having[c.uid] = true
		case standsInLine:
			line = append(line, c)
		case standsAside:
		}
	}
	withTurn := func(c candidate) (n int) {
		for _, uid := range c.above {
			if having[uid] {
				n++
			}
		}
		return n
	}
	slices.SortFunc(line, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(min(withTurn(b), 1), min(withTurn(a), 1)), a.created.Compare(b.created), cmp.Compare(a.name, b.name))
	})
	out := map[types.UID]turn{}
	for ahead, c := range line {
		t := turn{limit: limit, active: len(having) - withTurn(c)}
		if t.active+ahead >= int(limit) {
			t.place = ahead + 1
		}
		out[c.uid] = t
	}
	return out
}

// queued holds a Run back until its turn has come.
func queued(w world) (plan, bool) {
	t := w.turn
	if w.facts.queued != nil {
		t = *w.facts.queued // another Run has taken the place since
	}
	if w.attempt() > 0 || t.place == 0 {
		return plan{}, false
	}
	return inLine(w.run.Spec.Agent, t), true
}

// A Run in the queue is looked at when something before it ends. What it says of
// its place is brought up to date now and then, the farther back the less often.
const (
	nearWait = 10 * time.Second
	farWait  = 5 * time.Minute
)

func inLine(agent string, t turn) plan {
	are := "are"
	if t.limit == 1 {
		are = "is"
	}
	message := fmt.Sprintf("%s in the queue of Agent %s: %d of %s %s active", ordinal(t.place), agent, t.active, count(t.limit, "Run"), are)
	return waiting(v1alpha1.ReasonQueued, message, min(time.Duration(t.place)*nearWait, farWait))
}

// ordinal is 1st, 2nd, 3rd, 4th and so on.
func ordinal(n int) string {
	suffix := "th"
	if tens := n / 10 % 10; tens != 1 {
		switch n % 10 {
		case 1:
			suffix = "st"
		case 2:
			suffix = "nd"
		case 3:
			suffix = "rd"
		}
	}
	return fmt.Sprintf("%d%s", n, suffix)
}
