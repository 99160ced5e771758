package workflowrun

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/graph"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// A turn is one look at the graph.
type turn struct {
	world
	mind          *mind
	main, finally *children.Budget
	grants        map[place]children.Amounts

	end, told string // why nodes do not start any more, and the same for people
	more      bool   // there is more to make than one turn makes
}

// maxMade is how many children one turn makes: those are recorded before the next.
const maxMade = 64

// soon is when a turn that left something to make is followed by the next.
const soon = 100 * time.Millisecond

// underway does what the graph says.
func underway(w world) (plan, bool) {
	t := &turn{world: w}
	verdicts, decided := verdicts(w)
	next := t.next(verdicts)
	p := plan{progress: &progress{decided: decided, nodes: t.nodeStatuses(next)}}
	if next.Ended {
		p.Outcome, p.progress.result = t.result(next)
		return p, true
	}
	p.progress.pending = t.mind.asked(next.Ask)
	p.progress.result = t.foreseen()
	p.setStates = t.stateChanges(next)
	for _, s := range next.Start {
		at := place{s.Node, s.Number}
		p.make = append(p.make, t.childOf(at, t.budgetOf(s.Node)))
	}
	p.Outcome = t.describe(next, p.progress)
	p.wake = expiresIn(w, p.progress.pending)
	if t.more {
		p.wake = sooner(p.wake, soon)
	}
	if again := t.askAgain(); again > 0 {
		p.wake = sooner(p.wake, again)
	}
	return p, true
}

// next asks the graph: once, and where something ends the Run that is still to be
// ended, once more.
func (t *turn) next(verdicts map[string]graph.ApprovalState) graph.Next {
	if r := t.recorded(); r != nil && r.Reason != v1alpha1.ReasonNodeFailed {
		t.end, t.told = r.Reason, r.Message
		return t.ask(verdicts)
	}
	next := t.ask(verdicts)
	if t.over(next) {
		return next
	}
	if t.end, t.told = t.ending(); t.end != "" {
		return t.ask(verdicts)
	}
	return next
}

// ask is one question to the graph, with all that is used and set aside counted
// anew.
func (t *turn) ask(verdicts map[string]graph.ApprovalState) graph.Next {
	t.mind = newMind(t.world, t.end, t.told)
	t.grants, t.more = map[place]children.Amounts{}, false
	t.main, t.finally = budgets(t.world)
	seen := graph.Seen{
		Nodes:     map[string]graph.Status{},
		Approvals: verdicts,
		End:       t.end,
		Paused:    t.wantsPause() && t.end == "",
		Room:      graph.MaxChildren - made(t.world),
		Admit:     t.admit,
	}
	if d, empty := t.finally.Exhausted(); empty {
		seen.FinallyEnd = d.Reason()
	}
	for _, n := range t.nodes() {
		seen.Nodes[n.Name] = stands(t.world, n.Name)
	}
	for _, c := range t.children {
		at := placeOf(c)
		seen.Children = append(seen.Children, graph.Child{Node: at.node, Number: at.number, Done: runstatus.IsFinished(c), Succeeded: succeeded(c), Reason: nodeReason(c)})
	}
	next := t.program.Graph.Next(seen, t.mind)
	for node, text := range next.Problems {
		t.mind.problems[node] = problem{next.Nodes[node].Reason, text}
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

// made is how many children began.
func made(w world) int {
	exist, n := map[string]int{}, 0
	for _, c := range w.children {
		exist[placeOf(c).node]++
	}
	for _, node := range w.nodes() {
		n += max(exist[node.Name], stands(w, node.Name).Started)
	}
	return n
}

// budgets are what nodes may use, and what those of finally may: all that is used
// and set aside counted.
func budgets(w world) (main, finally *children.Budget) {
	main, finally = unusedBudgets(w)
	for _, c := range w.children {
		budgetOf(w, main, finally, placeOf(c).node).Charge(c, children.Lowest(ofTarget(w, c.Spec.Agent, c.Spec.Workflow), children.LimitsOf(c.Spec.Limits)))
	}
	for at, reserved := range reservationsOfDeleted(w) {
		p := budgetOf(w, main, finally, at.node)
		for d := range children.Resources {
			p.Used[d] += reserved[d]
		}
	}
	return main, finally
}

// unusedBudgets are the purses of nodes and of finally before anything is used.
func unusedBudgets(w world) (main, finally *children.Budget) {
	whole := children.Lowest(children.WorkflowLimits(w.version.Spec.Limits), children.LimitsOf(w.run.Spec.Limits))
	main, finally = &children.Budget{Limit: whole}, &children.Budget{Limit: forFinally(whole, w.version.Spec)}
	for d := range children.Resources {
		main.Bounded[d], finally.Bounded[d] = whole[d] > 0, finally.Limit[d] > 0
		if main.Bounded[d] && len(w.version.Spec.Finally) > 0 {
			main.Limit[d] -= finally.Limit[d]
		}
	}
	return main, finally
}

// budgetOf is the purse of a node.
func budgetOf(w world, main, finally *children.Budget, node string) *children.Budget {
	if w.final(node) {
		return finally
	}
	return main
}

func (t *turn) budgetOf(node string) *children.Budget {
	return budgetOf(t.world, t.main, t.finally, node)
}

// ofTarget are the limits of an Agent, or of a Workflow.
func ofTarget(w world, agent, workflow string) children.Amounts {
	if agent != "" {
		l := w.version.Agents[agent].Limits
		return children.Amounts{l.Steps, l.Tokens, l.CostMicroUSD, l.DurationSeconds}
	}
	if v := w.version.Workflows[workflow]; v != nil {
		return children.WorkflowLimits(v.Spec.Limits)
	}
	return children.Amounts{}
}

// admit sets aside what a child may use. What the cluster refused a moment ago it
// is not asked again, and while that is being told nothing else begins.
func (t *turn) admit(node string, number int) (ok bool, reason string) {
	at := place{node, number}
	if r, refused := t.refused[at]; refused {
		return false, r.reason
	}
	if t.refused != nil || len(t.grants) == maxMade {
		t.more = t.askAgain() == 0
		return false, graph.ReasonQueued
	}
	n := t.program.Node(node)
	grant, enough := t.budgetOf(node).Reserve(wantedBy(t.world, t.main, n))
	if !enough {
		return false, graph.ReasonQueued // one that is used up ends the Run
	}
	t.grants[at] = grant
	return true, ""
}

// stateChanges stops the children of nodes that are cancelled or have ended without them,
// and pauses and resumes the others with the Run.
func (t *turn) stateChanges(next graph.Next) []children.StateChange {
	var out []children.StateChange
	for _, c := range t.children {
		node := placeOf(c).node
		change, needed := children.Pause(c, t.wantsPause() && t.end == "")
		if slices.Contains(next.Cancel, node) || next.Nodes[node].State.Ended() {
			change, needed = children.Stop(c)
		}
		if needed {
			out = append(out, change)
		}
	}
	return out
}

// Waits before the cluster is asked again for what it had no room for: as long as
// nothing has moved.
const (
	minAgain = time.Second
	maxAgain = time.Minute
)

// askAgain is when the cluster is asked again; 0: there is nothing to ask.
func (t *turn) askAgain() time.Duration {
	for _, r := range t.refused {
		if r.reason == v1alpha1.ReasonQuotaExceeded {
			return max(minAgain, min(t.now.Sub(moved(t.world)), maxAgain))
		}
	}
	return 0
}

// moved is when a node last began, or ended.
func moved(w world) time.Time {
	last := w.run.CreationTimestamp.Time
	for _, at := range w.run.Status.Nodes {
		for _, moment := range []*metav1.Time{at.StartedAt, at.FinishedAt} {
			if moment != nil && moment.After(last) {
				last = moment.Time
			}
		}
	}
	return last
}
