package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/template"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Bounds of delegation.
const (
	maxChildren = 100 // Runs that agents of one Run ask for
	maxDepth    = 5   // Runs below the first
)

// A delegation is a request of the runner for a child Run.
type delegation struct {
	v1alpha1.PendingRequest
	child *v1alpha1.Run // nil: it is not there
	gone  bool          // it was, and somebody deleted it
}

// delegations are what a report asks child Runs for, in its order.
func (w world) delegations(p *v1alpha1.RunProgress) []delegation {
	if p == nil {
		return nil
	}
	var out []delegation
	for _, q := range p.Pending {
		if q.Kind != task.PendingDelegation {
			continue
		}
		d := delegation{PendingRequest: q}
		if i := slices.IndexFunc(w.children, func(c v1alpha1.Run) bool { return c.Labels[v1alpha1.LabelRequest] == requestLabel(q.ID) }); i >= 0 {
			d.child = &w.children[i]
		}
		d.gone = d.child == nil && slices.Contains(w.run.Status.Internal.Delegated, mark(requestLabel(q.ID)))
		out = append(out, d)
	}
	return out
}

// refusal says, to the agent that asked, why no child Run is made; empty: nothing
// is in the way. It follows from what there is, so it is the same each time.
func refusal(w world, d delegation) string {
	name := untrusted.Line(d.Agent, task.MaxAsker)
	offer := offered(w, d.Agent)
	depth := min(w.limits().task.Depth, maxDepth)
	switch {
	case d.child != nil && d.child.Annotations[v1alpha1.AnnotationDigest] != d.Digest:
		return fmt.Sprintf("An earlier attempt asked for something else under the id of this call, and Run %s is doing that. Do not ask for it again; do the work yourself, or say that it could not be done", d.child.Name)
	case d.child != nil || d.gone:
		return ""
	case offer == nil:
		return fmt.Sprintf("Agent %s is not listed in spec.tools with delegation: {mode: Run}", name)
	case int64(len(w.above))+1 > depth:
		return fmt.Sprintf("Delegation is limited to a depth of %d (limits.depth), and this Run has depth %d: do the work yourself", depth, len(w.above))
	case len(w.run.Status.Internal.Delegated) >= maxChildren:
		return fmt.Sprintf("This Run has asked for %d Runs already, which is the most: do the rest yourself", maxChildren)
	}
	if _, _, problem := ordered(d, offer); problem != "" {
		return problem
	}
	if _, _, is := reserve(w, d); is == limitExhausted {
		return "Nothing is left of limits.tokens or limits.cost of this Run for another one: do without it"
	}
	return ""
}

// offered is the tool by which an agent of a Run gives work to another in a Run of
// its own; nil: none does.
func offered(w world, agent string) *task.Tool {
	if w.version == nil {
		return nil
	}
	s := w.version.Snapshot
	for _, a := range append([]task.Agent{s.Agent}, s.Agents...) {
		for i := range a.Tools {
			if t := &a.Tools[i]; t.Mode == task.ModeRun && t.Agent == agent {
				return t
			}
		}
	}
	return nil
}

// delegates says whether any agent of a snapshot may ask for a child Run.
func delegates(s task.Snapshot) bool {
	return slices.ContainsFunc(append([]task.Agent{s.Agent}, s.Agents...), func(a task.Agent) bool {
		return slices.ContainsFunc(a.Tools, func(t task.Tool) bool { return t.Mode == task.ModeRun })
	})
}

// ordered is what a child Run is given, of what its caller said. A text is given as
// it is: what looks like a place for a value in it is none.
func ordered(d delegation, offer *task.Tool) (prompt string, input *runtime.RawExtension, problem string) {
	if d.ArgsTruncated || len(d.Args) > task.MaxDelegated {
		return "", nil, fmt.Sprintf("What it is given has more than %d bytes: shorten it", task.MaxDelegated)
	}
	var args map[string]json.RawMessage
	if json.Unmarshal([]byte(d.Args), &args) != nil || args == nil {
		return "", nil, "What it is given is no JSON object"
	}
	if len(offer.InputSchema) > 0 {
		return "", &runtime.RawExtension{Raw: []byte(d.Args)}, ""
	}
	if json.Unmarshal(args["prompt"], &prompt) != nil || strings.Trim(prompt, " \t\r\n") == "" {
		return "", nil, "Say in prompt what is to be done"
	}
	return template.Literal(prompt), nil, ""
}

// delegating makes the first child Run that is asked for and not there yet.
func delegating(w world) (plan, bool) {
	if wantsPause(w) || w.version == nil {
		return plan{}, false
	}
	if w.facts.childRefused != nil {
		return refusedChild(w), true
	}
	for _, d := range w.delegations(w.progress()) {
		if d.child != nil || d.gone || refusal(w, d) != "" || turnedAway(w, d) {
			continue
		}
		if b, grant, is := reserve(w, d); is == reserved {
			return plan{child: childOf(w, d, childLimits(w, b, grant)), asked: d.PendingRequest, wake: retell}, true
		}
	}
	return plan{}, false
}

// turnedAway says whether the runner was told that the cluster takes no such Run.
func turnedAway(w world, d delegation) bool {
	pod := w.pod()
	return pod != nil && slices.ContainsFunc(runnerpod.SignalsIn(pod).Children, func(c task.Child) bool { return c.Request == d.ID && c.Run == "" })
}
