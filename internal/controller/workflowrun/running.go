package workflowrun

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// evaluation is one evaluation of the graph.
type evaluation struct {
	state
	evaluator     *evaluator
	main, finally *children.Budget
	grants        map[childKey]children.Amounts
	works         map[childKey]work // of the children that start
	unchanged     map[string]bool   // by node: whether what it waits for did nothing in this Run

	endReason, endMessage string // why nodes do not start any more, and the same for people
	more                  bool   // there is more to make than one turn makes
}

// maxCreated is how many children one Reconcile creates at most: they are recorded before the next.
const maxCreated = 64

// nextBatchDelay is the delay before the next children are created.
const nextBatchDelay = 100 * time.Millisecond

// running executes the decisions of the graph.
func running(s state) (plan, bool) {
	t := &evaluation{state: s}
	approvals, decided := approvalStates(s)
	next := t.evaluate(approvals)
	reused, own := t.reusedApprovals(next.Ask)
	if len(own) > 0 {
		return plan{own: own, wake: nextBatchDelay}, true // when the cache shows it, the approvals are reused
	}
	p := plan{progress: &progress{decided: slices.Concat(decided, reused), nodes: t.nodeStatuses(next)}}
	if next.Ended {
		p.Outcome, p.progress.result = t.result(next)
		return p, true
	}
	p.progress.pending = t.evaluator.pendingRequests(slices.DeleteFunc(next.Ask, func(node string) bool { return decidedFor(reused, requestOf(node)) != nil }))
	p.progress.result = t.plannedEnd()
	p.setStates = t.stateChanges(next)
	for _, start := range next.Start {
		at := childKey{start.Node, start.Number}
		p.create = append(p.create, t.childOf(at, t.budgetOf(start.Node)))
	}
	p.Outcome = t.describe(next, p.progress)
	p.wake = expiresIn(s, p.progress.pending)
	if t.more || len(reused) > 0 {
		p.wake = earlier(p.wake, nextBatchDelay)
	}
	p.wake = earlier(p.wake, t.retryIn())
	if no, is := t.retried(); is && len(p.progress.pending) == 0 && !hasActiveChild(s) {
		return childrenRefused(s, p, no.text), true
	}
	return p, true
}

// evaluate evaluates the graph. If the evaluation finds a new reason to end the Run, it evaluates once more with that.
func (e *evaluation) evaluate(approvals map[string]graph.ApprovalState) graph.Next {
	if r := e.recordedEnd(); r != nil && r.Reason != v1alpha1.ReasonNodeFailed {
		e.endReason, e.endMessage = r.Reason, r.Message
		return e.callGraph(approvals)
	}
	next := e.callGraph(approvals)
	if e.isEnding(next) {
		return next
	}
	if e.endReason, e.endMessage = e.endFromOutside(); e.endReason != "" {
		return e.callGraph(approvals)
	}
	return next
}

// callGraph evaluates the graph once, with all usage and reservations computed again.
func (e *evaluation) callGraph(approvals map[string]graph.ApprovalState) graph.Next {
	e.evaluator = newEvaluator(e.state, e.endReason, e.endMessage)
	e.grants, e.more = map[childKey]children.Amounts{}, false
	e.works, e.unchanged = map[childKey]work{}, map[string]bool{}
	e.main, e.finally = budgets(e.state)
	seen := graph.Seen{
		Nodes:        map[string]graph.Status{},
		Approvals:    approvals,
		End:          e.endReason,
		Paused:       e.wantsPause() && e.endReason == "",
		ChildrenLeft: graph.MaxChildren - childrenCreated(e.state),
		Admit:        e.admit,
	}
	if d, empty := e.finally.Exhausted(); empty {
		seen.FinallyEnd = d.Reason()
	}
	for _, n := range e.nodes() {
		seen.Nodes[n.Name] = recordedState(e.state, n.Name)
	}
	for _, c := range e.children {
		at := keyOf(c)
		seen.Children = append(seen.Children, graph.Child{Node: at.node, Number: at.index, Done: runstatus.IsFinished(c), Succeeded: succeeded(c), Reason: nodeReason(c)})
	}
	next := e.program.Graph.Next(seen, e.evaluator)
	for node, text := range next.Problems {
		e.evaluator.problems[node] = problem{next.Nodes[node].Reason, text}
	}
	return next
}

// nodeReason returns the reason of a node whose child Run failed. The schema refuses
// reasons that are not in the list.
func nodeReason(c *v1alpha1.Run) string {
	reason := runstatus.OutcomeOf(c.Status).Reason
	if slices.Contains(v1alpha1.NodeReasons, reason) {
		return reason
	}
	return v1alpha1.NodeReasonFailed
}

// childrenCreated returns how many children were created.
func childrenCreated(s state) int {
	exist, n := map[string]int{}, 0
	for _, c := range s.children {
		exist[keyOf(c).node]++
	}
	for _, node := range s.nodes() {
		n += max(exist[node.Name], recordedState(s, node.Name).Started)
	}
	return n
}

// budgets returns the budget of the nodes and the budget of finally, with all usage and reservations.
func budgets(s state) (main, finally *children.Budget) {
	main, finally = unusedBudgets(s)
	for _, c := range s.children {
		if isReused(c) {
			continue
		}
		budgetOf(s, main, finally, keyOf(c).node).Charge(c, children.Lowest(targetLimits(s, c.Spec.Agent, c.Spec.Workflow), children.LimitsOf(c.Spec.Limits)))
	}
	for at, reserved := range reservationsOfDeleted(s) {
		p := budgetOf(s, main, finally, at.node)
		for d := range children.Resources {
			p.Used[d] += reserved[d]
		}
	}
	return main, finally
}

// unusedBudgets returns both budgets before anything is used.
func unusedBudgets(s state) (main, finally *children.Budget) {
	whole := children.Lowest(children.WorkflowLimits(s.revision.Spec.Limits), children.LimitsOf(s.run.Spec.Limits))
	main, finally = &children.Budget{Limit: whole}, &children.Budget{Limit: forFinally(whole, s.revision.Spec)}
	for d := range children.Resources {
		main.Bounded[d], finally.Bounded[d] = whole[d] > 0, finally.Limit[d] > 0
		if main.Bounded[d] && len(s.revision.Spec.Finally) > 0 {
			main.Limit[d] -= finally.Limit[d]
		}
	}
	return main, finally
}

// budgetOf returns the budget of a node.
func budgetOf(s state, main, finally *children.Budget, node string) *children.Budget {
	if s.isFinally(node) {
		return finally
	}
	return main
}

func (e *evaluation) budgetOf(node string) *children.Budget {
	return budgetOf(e.state, e.main, e.finally, node)
}

// targetLimits returns the limits of an Agent, or of a Workflow.
func targetLimits(s state, agent, workflow string) children.Amounts {
	if agent != "" {
		l := s.revision.Agents[agent].Limits
		return children.Amounts{l.Steps, l.Tokens, l.CostMicroUSD, l.DurationSeconds}
	}
	if v := s.revision.Workflows[workflow]; v != nil {
		return children.WorkflowLimits(v.Spec.Limits)
	}
	return children.Amounts{}
}

// admit reserves the limits of a child, unless it has the result of another Run. A child that the API server has just refused is not requested again, and until
// that refusal is reported no other child starts.
func (e *evaluation) admit(node string, number int) (ok bool, reason string) {
	at := childKey{node, number}
	if r, refused := e.refused[at]; refused {
		return false, r.reason
	}
	if e.refused != nil || len(e.grants) == maxCreated {
		e.more = e.retryIn() == 0
		return false, graph.ReasonQueued
	}
	e.works[at] = e.workOf(at)
	if e.works[at].reused != nil {
		e.grants[at] = children.Amounts{}
		return true, ""
	}
	n := e.program.Node(node)
	grant, enough := e.budgetOf(node).Reserve(wantedBy(e.state, e.main, n))
	if !enough {
		return false, graph.ReasonQueued // one that is used up ends the Run
	}
	e.grants[at] = grant
	return true, ""
}

// stateChanges stops the children of nodes that are cancelled or have ended without them,
// and pauses and resumes the others with the Run.
func (e *evaluation) stateChanges(next graph.Next) []children.StateChange {
	var out []children.StateChange
	for _, c := range e.children {
		node := keyOf(c).node
		change, needed := children.Pause(c, e.wantsPause() && e.endReason == "")
		if slices.Contains(next.Cancel, node) || next.Nodes[node].State.Ended() {
			change, needed = children.Stop(c)
		}
		if needed {
			out = append(out, change)
		}
	}
	return out
}

// Bounds of the delay before requests are repeated for which the cluster had no capacity. It grows while no node starts
// or ends.
const (
	minAgain = time.Second
	maxAgain = time.Minute
)

// retryIn returns the delay before requests without capacity are repeated; 0: there are none.
func (e *evaluation) retryIn() time.Duration {
	if _, is := e.retried(); is {
		return max(minAgain, min(e.now.Sub(lastProgress(e.state)), maxAgain))
	}
	return 0
}

// lastProgress returns when a node last started or ended.
func lastProgress(s state) time.Time {
	last := s.run.CreationTimestamp.Time
	for _, at := range s.run.Status.Nodes {
		for _, moment := range []*metav1.Time{at.StartedAt, at.FinishedAt} {
			if moment != nil && moment.After(last) {
				last = moment.Time
			}
		}
	}
	return last
}
