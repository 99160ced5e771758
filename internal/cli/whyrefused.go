package cli

import (
	"fmt"
	"net"
	"strconv"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// printRefused prints which tool calls of the Run were denied, and what its commands tried to
// reach.
func (x explainer) printRefused(run *v1alpha1.Run) {
	refused := progressOf(run).Refused
	if refused == nil {
		return
	}
	x.printDenied(refused)
	if refused.Connections == 0 {
		return
	}
	fmt.Fprintf(x.Out, "Refused connections of commands: %d\n", refused.Connections)
	t := newTable(x.Out, "HOST", "COUNT", "STEP", "WHY")
	listed := int64(0)
	for _, h := range refused.Hosts {
		listed += h.Count
		t.row(hostPort(h), strconv.FormatInt(h.Count, 10), strconv.FormatInt(h.FirstStep, 10), whyRefused(h.Reason))
	}
	_ = t.print()
	if more := refused.Connections - listed; more > 0 {
		fmt.Fprintf(x.Out, "%d more were to other hosts, or to names that are not valid: see the events host.refused in the log\n", more)
	}
	if run.Spec.Agent != "" {
		fmt.Fprintf(x.Out, "To allow hosts: kubectl deckhand hosts %s\n", run.Spec.Agent)
	}
}

func hostPort(h v1alpha1.RefusedHost) string {
	return net.JoinHostPort(h.Host, strconv.Itoa(int(h.Port)))
}

func whyRefused(reason v1alpha1.RefusedReason) string {
	switch reason {
	case v1alpha1.RefusedNotListed:
		return "not in sandbox.egress.hosts of the Agent"
	case v1alpha1.RefusedNotPublic:
		return "leads to no public address"
	}
	return string(reason)
}

// printDenied prints the tools whose calls were denied.
func (x explainer) printDenied(refused *v1alpha1.Refused) {
	if refused.ToolCalls == 0 {
		return
	}
	fmt.Fprintf(x.Out, "Denied tool calls: %d\n", refused.ToolCalls)
	t := newTable(x.Out, "TOOL", "COUNT", "STEP", "DENIED BY")
	listed := int64(0)
	for _, d := range refused.Tools {
		listed += d.Count
		t.row(d.Name, strconv.FormatInt(d.Count, 10), strconv.FormatInt(d.FirstStep, 10), deniedBy(d.By))
	}
	_ = t.print()
	if more := refused.ToolCalls - listed; more > 0 {
		fmt.Fprintf(x.Out, "%d more were calls of other tools: see the events call.denied in the log\n", more)
	}
}

func deniedBy(by v1alpha1.DeniedBy) string {
	switch by {
	case v1alpha1.DeniedByPolicy:
		return "a policy rule"
	case v1alpha1.DeniedByApprover:
		return "a user"
	case v1alpha1.DeniedByTimeout:
		return "no user decided"
	case v1alpha1.DeniedByHook:
		return "a hook"
	}
	return string(by)
}
