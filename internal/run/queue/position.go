package queue

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// State is the state of a Run in the queue of its Agent.
type State int

// The states. A Run that has started has a place. A Run that is NotQueued needs none.
const (
	NotQueued State = iota
	Waiting
	Started
)

// StateOf returns the state of a Run.
func StateOf(run *v1alpha1.Run) State {
	switch {
	case run.Status.CompletionTime != nil:
		return NotQueued
	case run.Status.Attempt != nil && awaitsChild(run):
		return NotQueued
	case run.Status.Attempt != nil:
		return Started
	case !run.DeletionTimestamp.IsZero(), run.Spec.DesiredState == v1alpha1.DesiredPaused, run.Spec.DesiredState == v1alpha1.DesiredStopped:
		return NotQueued
	}
	if _, is := runstatus.Restored(run); is {
		return NotQueued
	}
	return Waiting
}

// awaitsChild reports whether a Run does nothing but wait for child Runs, with or without a pod.
func awaitsChild(run *v1alpha1.Run) bool {
	a, p := run.Status.Attempt, run.Status.Progress
	return a != nil && p != nil && p.Attempt == a.Number && p.State == v1alpha1.ReasonAwaitingChild
}

// Entry is a Run of an Agent.
type Entry struct {
	UID       types.UID
	Name      string
	Created   time.Time
	State     State
	Ancestors []types.UID // the Runs that it is a part of
}

// Position is the position of a Run in the queue. It is zero if its Agent has no bound.
type Position struct {
	Limit  int32 // of active Runs; 0: none
	Active int   // other active Runs, without its own ancestors
	Number int   // in the queue, from 1; 0: the Run may start
}

// Positions returns the positions of all Runs that wait. Descendants of a Run that has
// started come first, because its place is theirs too.
func Positions(all []Entry, limit int32) map[types.UID]Position {
	having := map[types.UID]bool{}
	var line []Entry
	for _, c := range all {
		switch c.State {
		case Started:
			having[c.UID] = true
		case Waiting:
			line = append(line, c)
		case NotQueued:
		}
	}
	withTurn := func(c Entry) (n int) {
		for _, uid := range c.Ancestors {
			if having[uid] {
				n++
			}
		}
		return n
	}
	slices.SortFunc(line, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(min(withTurn(b), 1), min(withTurn(a), 1)), a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
	})
	out := map[types.UID]Position{}
	for ahead, c := range line {
		t := Position{Limit: limit, Active: len(having) - withTurn(c)}
		if t.Active+ahead >= int(limit) {
			t.Number = ahead + 1
		}
		out[c.UID] = t
	}
	return out
}
