package run

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
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
	gone  bool          // it was created and then deleted
}

// delegations returns the requests for child Runs of a report, in its order.
func (s state) delegations(p *v1alpha1.RunProgress) []delegation {
	if p == nil {
		return nil
	}
	var out []delegation
	for _, q := range p.Pending {
		if q.Kind != task.PendingDelegation {
			continue
		}
		d := delegation{PendingRequest: q}
		if i := slices.IndexFunc(s.children, func(c v1alpha1.Run) bool { return c.Labels[v1alpha1.LabelRequest] == requestLabel(q.ID) }); i >= 0 {
			d.child = &s.children[i]
		}
		d.gone = d.child == nil && slices.Contains(s.run.Status.Internal.Delegated, childMark(requestLabel(q.ID)))
		out = append(out, d)
	}
	return out
}

// delegationProblem returns, for the agent, why no child Run is created; empty: it can be. It depends only on the
// state, so the answer stays the same.
func delegationProblem(s state, d delegation) string {
	name := untrusted.Words(d.Agent, task.MaxAsker)
	offer := delegationTool(s, d.Agent)
	depth := min(s.limits().task.Depth, maxDepth)
	switch {
	case d.child != nil && d.child.Annotations[v1alpha1.AnnotationDigest] != d.Digest:
		return fmt.Sprintf("An earlier attempt asked for something else under the id of this call, and Run %s is doing that. Do not ask for it again; do the work yourself, or say that it could not be done", d.child.Name)
	case d.child != nil || d.gone:
		return ""
	case d.Cancelled:
		return "The call was cancelled before it was created"
	case offer == nil:
		return fmt.Sprintf("Agent %s is not listed in spec.tools with delegation: {mode: Run}", name)
	case int64(len(s.ancestors))+1 > depth:
		return fmt.Sprintf("Delegation is limited to a depth of %d (limits.depth), and this Run has depth %d: do the work yourself", depth, len(s.ancestors))
	case len(s.run.Status.Internal.Delegated) >= maxChildren:
		return fmt.Sprintf("This Run has asked for %d Runs already, which is the most: do the rest yourself", maxChildren)
	}
	if _, _, problem := childInput(d, offer); problem != "" {
		return problem
	}
	if _, _, is := reserve(s, d); is == limitExhausted {
		return "Nothing is left of limits.tokens or limits.cost of this Run for another one: do without it"
	}
	return ""
}

// delegationTool returns the tool with which an agent of a Run delegates to another in a child Run; nil: there is none.
func delegationTool(s state, agent string) *task.Tool {
	if s.revision == nil {
		return nil
	}
	snap := s.revision.Snapshot
	for _, a := range append([]task.Agent{snap.Agent}, snap.Agents...) {
		for i := range a.Tools {
			if t := &a.Tools[i]; t.Mode == task.ModeRun && t.Agent == agent {
				return t
			}
		}
	}
	return nil
}

// delegates reports whether any agent of a snapshot can request a child Run.
func delegates(snap task.Snapshot) bool {
	return slices.ContainsFunc(append([]task.Agent{snap.Agent}, snap.Agents...), func(a task.Agent) bool {
		return slices.ContainsFunc(a.Tools, func(t task.Tool) bool { return t.Mode == task.ModeRun })
	})
}

// childInput returns the input of a child Run from the arguments of its caller. Placeholders in texts are not replaced.
func childInput(d delegation, offer *task.Tool) (prompt string, input *runtime.RawExtension, problem string) {
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

// delegating creates the first requested child Run that does not exist yet.
func delegating(s state) (plan, bool) {
	if wantsPause(s) || s.revision == nil {
		return plan{}, false
	}
	if s.facts.childRefused != nil {
		return childRefusal(s), true
	}
	for _, d := range s.delegations(s.progress()) {
		if d.child != nil || d.gone || delegationProblem(s, d) != "" || childWasRefused(s, d) {
			continue
		}
		if b, grant, is := reserve(s, d); is == reserved {
			return plan{child: childOf(s, d, childLimits(s, b, grant)), request: d.PendingRequest, wake: signalCheckInterval}, true
		}
	}
	return plan{}, false
}

// childWasRefused reports whether the runner has the result that its child Run was refused.
func childWasRefused(s state, d delegation) bool {
	pod := s.pod()
	return pod != nil && slices.ContainsFunc(runnerpod.SignalsIn(pod).Children, func(c task.Child) bool { return c.Request == d.ID && c.Run == "" })
}
