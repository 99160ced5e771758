package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
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

// quotaInterval is how soon the creation of a child Run is tried again after a quota refused it.
const quotaInterval = 15 * time.Second

// create creates a child Run. Reservations of other children are computed from the cache, so nothing is created if the
// cache is old. The cache is not old if it has the parent's record of the last child: it then has that child, too.
func (c childRuns) create(ctx context.Context, s state, p plan) (facts, error) {
	var is v1alpha1.Run
	if err := c.live.Get(ctx, client.ObjectKeyFromObject(s.run), &is); client.IgnoreNotFound(err) != nil {
		return facts{}, fmt.Errorf("getting Run %s: %w", s.run.Name, err)
	}
	if is.UID != s.run.UID || !slices.Equal(is.Status.Internal.Delegated, s.run.Status.Internal.Delegated) {
		return facts{outdated: true}, nil
	}
	_, err := children.Create(ctx, c.client, c.live, children.Child{Run: p.child, Names: childNames(s.run, p.request.ID), Is: isChildFor(s.run, p.child)})
	switch {
	case err == nil:
		return facts{}, nil
	case isAnswerToChild(err):
		return facts{childRefused: err, childRequest: p.request.ID}, nil
	}
	return facts{}, fmt.Errorf("creating Run %s: %w", p.child.Name, err)
}

// isAnswerToChild reports whether an error is about this child Run: it is invalid, its names are taken, or the operator
// lacks a permission.
func isAnswerToChild(err error) bool {
	_, taken := errors.AsType[*children.NamesTakenError](err)
	return taken || isAnswer(err) || apierr.Classify(err) == apierr.Forbidden
}

// requestedAt returns since when a runner has waited for a child Run. Without a time in its report, that is now.
func requestedAt(s state, request string) time.Time {
	if p := s.progress(); p != nil {
		for i := range p.Pending {
			if p.Pending[i].ID == request && p.Pending[i].AskedAt != nil {
				return p.Pending[i].AskedAt.Time
			}
		}
	}
	return s.now
}

// isChildFor returns a function that reports whether a Run is the child for the same parent and request.
func isChildFor(parent, child *v1alpha1.Run) func(*v1alpha1.Run) bool {
	return func(existing *v1alpha1.Run) bool {
		return isChild(existing, parent) && existing.Labels[v1alpha1.LabelRequest] == child.Labels[v1alpha1.LabelRequest]
	}
}

// mayPass returns for an error of creating a child Run: the message and the reason while it waits, and how soon the
// request is sent again; 0: never, because the error is about this child.
func mayPass(err error) (message, reason string, retry time.Duration) {
	if taken, is := errors.AsType[*children.NamesTakenError](err); is {
		return fmt.Sprintf("The names %s are used by Runs that are not part of this one. Delete those Runs", strings.Join(taken.Names, " and ")), v1alpha1.ReasonAwaitingChild, maxRefusedWait
	}
	switch apierr.Classify(err) {
	case apierr.Terminating:
		return "The namespace is being deleted", v1alpha1.ReasonAwaitingChild, maxRefusedWait
	case apierr.Forbidden:
		return apierr.Describe(err), v1alpha1.ReasonAwaitingChild, maxRefusedWait
	case apierr.Quota:
		return "The namespace's ResourceQuota has no room for a child Run. Raise it, or delete finished Runs: " + apierr.Text(err), v1alpha1.ReasonQuotaExceeded, quotaInterval
	default:
		return "The API server refused the child Run: " + apierr.Text(err), "", 0
	}
}

// childRefusal returns the plan after the API server refused a child Run. It waits, limits.pending at most, if the
// cause may pass, and reports any other cause to the agent. If the runner has ended, another attempt starts to report
// it, after a delay because the agent may request the child again.
func childRefusal(s state) plan {
	message, reason, retry := mayPass(s.facts.childRefused)
	if retry > 0 {
		limit := s.limits().pending
		if left := limit - s.now.Sub(requestedAt(s, s.facts.childRequest)); left > 0 {
			return waiting(reason, task.Cut(message, task.MaxMessage), min(retry, left))
		}
		message = fmt.Sprintf("Timed out after %s (limits.pending). %s", limit, message)
	}
	message = task.Cut(message, task.MaxMessage)
	pod := s.pod()
	if !runnerpod.IsAlive(pod) {
		if age := s.now.Sub(reportedAt(s)); age >= 0 && age < maxRefusedWait { // the runner's clock may be ahead
			return waiting(v1alpha1.ReasonAwaitingChild, message, maxRefusedWait-age)
		}
		return resume(s)
	}
	told := runnerpod.SignalsIn(pod)
	told.Children = append(told.Children, task.Child{Request: s.facts.childRequest, Message: message})
	told.SentAt = s.now.Unix()
	return plan{signal: pod, signals: told, wake: signalCheckInterval}
}

// A Run shares its limits on tokens and cost with the child Runs that its agents ask for.

// defaultShare: an Agent without its own limits gets a quarter of each limit, so that several children and their parent
// can run at the same time.
const defaultShare = 4

// reservation is the result of reserving limits for a child Run.
type reservation int

const (
	reserved       reservation = iota
	mustWait                   // other children have reserved the rest, and may release some of it
	limitExhausted             // nothing is left, and no child can release any
)

// reserve reserves a part of the budget of a Run for a child Run: the limits of its Agent or, if no other child is
// active, at most everything that is left.
func reserve(s state, d delegation) (*children.Budget, children.Amounts, reservation) {
	b := s.budget()
	grant, enough := b.Reserve(wantedBy(s.agents[d.Agent], b.Limit))
	switch {
	case enough:
		return b, grant, reserved
	case b.Active > 0:
		return b, grant, mustWait
	default:
		return b, grant, limitExhausted
	}
}

// wantedBy returns the most that a child Run of an Agent may use. The Agent is nil if it does not exist yet.
func wantedBy(agent *v1alpha1.Agent, whole children.Amounts) children.Amounts {
	var own v1alpha1.AgentLimits
	if agent != nil {
		own = agent.Spec.Limits
	}
	limits := snapshot.LimitsOf(own)
	want := children.Amounts{children.Cost: limits.CostMicroUSD}
	if own.Tokens != nil {
		want[children.Tokens] = limits.Tokens
	}
	for r := range children.Resources {
		if want[r] == 0 {
			want[r] = max(whole[r]/defaultShare, 1)
		}
		want[r] = min(want[r], whole[r])
	}
	return want
}

// budget returns the budget of a Run with its own usage, the reservations of active children, and the usage of finished
// children that the runner has not charged yet.
func (s state) budget() *children.Budget {
	l := withGrants(s.limits().task, s.granted)
	b := children.NewBudget(children.Amounts{children.Tokens: l.Tokens, children.Cost: l.CostMicroUSD})
	waitsFor := s.delegations(s.progress())
	var finished, unread children.Amounts // unread: of those whose results the runner waits for
	for i := range s.children {
		child := &s.children[i]
		reservation := children.LimitsOf(child.Spec.Limits)
		if !runstatus.IsFinished(child) {
			b.Charge(child, reservation)
			continue
		}
		if p := child.Status.Progress; p != nil {
			finished = finished.Plus(children.UsageOf(p))
		}
		if slices.ContainsFunc(waitsFor, func(d delegation) bool { return d.child == child }) {
			unread = unread.Plus(children.UsedBy(child, reservation))
		}
	}
	if p := s.run.Status.Progress; p != nil {
		// It is not known whether a runner that was resumed, or whose call was cancelled, has read a result: only its
		// charges show that.
		charged, known := children.ChildUsageOf(p)
		if known {
			unread = unread.Max(finished.Minus(charged))
		}
		b.Use(children.UsageOf(p).Max(charged)) // if its own cost is unknown, that of its children counts
	}
	b.Use(unread)
	return b
}

// childLimits returns the limits of a child Run, including how deep its agents may delegate.
func childLimits(s state, b *children.Budget, grant children.Amounts) *v1alpha1.Limits {
	depth := int32(max(0, min(s.limits().task.Depth, maxDepth)))
	return b.LimitsFor(&v1alpha1.Limits{Depth: &depth}, grant)
}
