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
func (r *Run) Remotes() []RemoteCalls {
	return slices.SortedFunc(maps.Values(r.remotes), func(x, y RemoteCalls) int {
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.Field, y.Field))
	})
}

// countRemotes counts the endpoint of a call, and the hooks that were asked about a step.
func (r *Run) countRemotes(rec journal.Record) {
	if rec.Remote != nil {
		r.countRemote(*rec.Remote)
	}
	if rec.Step == nil {
		return
	}
	for _, h := range rec.Step.Hooks {
		to := journal.Remote{Name: "hook " + h.Name, Field: "its url in spec.hooks of Agent " + cmp.Or(rec.Step.Scope.Agent, r.Agent)}
		if h.Did == step.HookFailed {
			to.Unreachable = cmp.Or(h.Reason, "it failed")
		}
		r.countRemote(to)
	}
}

func (r *Run) countRemote(to journal.Remote) {
	if r.remotes == nil {
		r.remotes = map[string]RemoteCalls{}
	}
	key := to.Name + "\n" + to.Field
	calls := r.remotes[key]
	calls.Made++
	if to.Unreachable != "" {
		calls.Failed++
	} else {
		to.Unreachable = calls.Unreachable
	}
	calls.Remote = to
	r.remotes[key] = calls
}
