package run

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// pendingChildResults returns the results of child Runs that the runner waits for: as many as fit, at least one.
// Results of refused requests that were sent before are kept.
func pendingChildResults(s state, p *v1alpha1.RunProgress, told []task.Child) []task.Child {
	var out []task.Child
	size := 0
	for _, d := range s.delegations(p) {
		c, known := childResult(s, d)
		if i := slices.IndexFunc(told, func(t task.Child) bool { return t.Request == d.ID && t.Run == "" }); i >= 0 && d.child == nil {
			c, known = told[i], true
		}
		if !known {
			continue
		}
		size += len(runnerpod.ToJSON(c))
		if len(out) > 0 && size > task.MaxChildSignals {
			return out
		}
		out = append(out, c)
	}
	return out
}

// childResult returns the result for a request; false: there is none yet.
func childResult(s state, d delegation) (task.Child, bool) {
	if d.gone {
		name := childNames(s.run, d.ID)[0]
		return task.Child{Request: d.ID, Run: name, Reason: v1alpha1.NodeReasonLost, Message: fmt.Sprintf("Run %s was deleted before its result was read", name)}, true
	}
	if why := delegationProblem(s, d); why != "" {
		return task.Child{Request: d.ID, Message: why}, true
	}
	if d.child == nil || !runstatus.IsFinished(d.child) {
		return task.Child{}, false
	}
	is := runstatus.OutcomeOf(d.child.Status)
	c := task.Child{Request: d.ID, Run: d.child.Name, Reason: task.Reason(is.Reason), Message: is.Message}
	p := d.child.Status.Progress
	if p == nil {
		return c, true
	}
	c.Usage = task.Usage(p.Usage)
	if p.Result != nil {
		c.Text, c.Output = p.Result.Text, p.Result.Output
	}
	return c, true
}

// equalChildren reports whether two lists have the same results.
func equalChildren(a, b []task.Child) bool {
	return len(a) == len(b) && bytes.Equal(runnerpod.ToJSON(a), runnerpod.ToJSON(b))
}

// childrenMessage names the child Runs that the Run waits for.
func childrenMessage(s state) string {
	var open []string
	for _, d := range s.delegations(s.progress()) {
		switch _, known := childResult(s, d); {
		case known, childWasRefused(s, d):
		case d.child != nil:
			open = append(open, fmt.Sprintf("Run %s of Agent %s (%s)", d.child.Name, d.child.Spec.Agent, reasonOf(d.child)))
		default:
			open = append(open, childNotCreatedMessage(s, d))
		}
	}
	switch len(open) {
	case 0:
		return "Waiting for the runner to read the results of its child Runs"
	case 1:
		return "Waiting for " + open[0]
	}
	return fmt.Sprintf("Waiting for %s and %d more", open[0], len(open)-1)
}

// childNotCreatedMessage describes what the creation of a child Run waits for.
func childNotCreatedMessage(s state, d delegation) string {
	agent := untrusted.Words(d.Agent, task.MaxAsker)
	if _, _, is := reserve(s, d); is == mustWait {
		return fmt.Sprintf("a Run of Agent %s, which needs more of limits.tokens or limits.cost than is left while other child Runs are active", agent)
	}
	return "a Run of Agent " + agent
}
