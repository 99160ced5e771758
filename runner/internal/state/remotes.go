package state

import (
	"cmp"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// RemoteCalls counts the calls of an endpoint. Unreachable is that of the last that
// failed.
type RemoteCalls struct {
	journal.Remote
	Made, Failed int64
}

// Remotes returns the calls of all endpoints, sorted by name and field: hooks of two
// agents may have one name.
func (b *Run) Remotes() []RemoteCalls {
	return slices.SortedFunc(maps.Values(b.remotes), func(x, y RemoteCalls) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Field, y.Field))
	})
}

// reach counts the endpoint of a call, and the hooks that were asked about a step.
func (b *Run) reach(r journal.Record) {
	if r.Remote != nil {
		b.count(*r.Remote)
	}
	if r.Step == nil {
		return
	}
	for _, h := range r.Step.Hooks {
		to := journal.Remote{Name: "hook " + h.Name, Field: "its url in spec.hooks of Agent " + cmp.Or(r.Step.Scope.Agent, b.Agent)}
		if h.Did == step.HookFailed {
			to.Unreachable = cmp.Or(h.Reason, "it failed")
		}
		b.count(to)
	}
}

func (b *Run) count(to journal.Remote) {
	if b.remotes == nil {
		b.remotes = map[string]RemoteCalls{}
	}
	key := to.Name + "\n" + to.Field
	calls := b.remotes[key]
	calls.Made++
	if to.Unreachable != "" {
		calls.Failed++
	} else {
		to.Unreachable = calls.Unreachable
	}
	calls.Remote = to
	b.remotes[key] = calls
}
