package workflowrun

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/graph"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// A turn is one look at the graph.
type turn struct {
	world
	mind          *mind
	main, finally *purse
	grants        map[place]amounts

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
	p.tell = t.orders(next)
	for _, s := range next.Start {
		at := place{s.Node, s.Number}
		p.make = append(p.make, t.childOf(at, t.purseOf(s.Node)))
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
	t.grants, t.more = map[place]amounts{}, false
	t.main, t.finally = purses(t.world)
	seen := graph.Seen{
		Nodes:     map[string]graph.Status{},
		Approvals: verdicts,
		End:       t.end,
		Paused:    t.wantsPause() && t.end == "",
		Room:      graph.MaxChildren - made(t.world),
		Admit:     t.admit,
	}
	if d, empty := t.finally.empty(); empty {
		seen.FinallyEnd = usedUp[d]
	}
	for _, n := range t.nodes() {
		seen.Nodes[n.Name] = stands(t.world, n.Name)
	}
	for _, c := range t.children {
		at := placeOf(c)
		seen.Children = append(seen.Children, graph.Child{Node: at.node, Number: at.number, Done: finished(c), Succeeded: succeeded(c), Reason: nodeReason(c)})
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

// purses are what nodes may use, and what those of finally may: all that is used
// and set aside counted.
func purses(w world) (main, finally *purse) {
	main, finally = wholePurses(w)
	for _, c := range w.children {
		purseFor(w, main, finally, placeOf(c).node).pay(c, lowest(ofTarget(w, c.Spec.Agent, c.Spec.Workflow), limitsOf(c.Spec.Limits)))
	}
	for at, reserved := range reservationsOfDeleted(w) {
		p := purseFor(w, main, finally, at.node)
		for d := range dimensions {
			p.used[d] += reserved[d]
		}
	}
	return main, finally
}

// wholePurses are the purses of nodes and of finally before anything is used.
func wholePurses(w world) (main, finally *purse) {
	whole := lowest(wholeOf(w.version.Spec.Limits), limitsOf(w.run.Spec.Limits))
	main, finally = &purse{limit: whole}, &purse{limit: forFinally(whole, w.version.Spec)}
	for d := range dimensions {
		main.bounded[d], finally.bounded[d] = whole[d] > 0, finally.limit[d] > 0
		if main.bounded[d] && len(w.version.Spec.Finally) > 0 {
			main.limit[d] -= finally.limit[d]
		}
	}
	return main, finally
}

// purseFor is the purse of a node.
func purseFor(w world, main, finally *purse, node string) *purse {
	if w.final(node) {
		return finally
	}
	return main
}

func (t *turn) purseOf(node string) *purse { return purseFor(t.world, t.main, t.finally, node) }

// ofTarget are the limits of an Agent, or of a Workflow.
func ofTarget(w world, agent, workflow string) amounts {
	if agent != "" {
		l := w.version.Agents[agent].Limits
		return amounts{l.Steps, l.Tokens, l.CostMicroUSD, l.DurationSeconds}
	}
	if v := w.version.Workflows[workflow]; v != nil {
		return wholeOf(v.Spec.Limits)
	}
	return amounts{}
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
	grant, enough := t.purseOf(node).set(wantedBy(t.world, t.main, n))
	if !enough {
		return false, graph.ReasonQueued // one that is used up ends the Run
	}
	t.grants[at] = grant
	return true, ""
}

// orders are what children are told: to stop where their node is canceled, or has
// ended without them, to hold where the Run is paused, to go on where it was. One
// that a person paused by itself stays so. Whose pause it is says the child: what
// the Run says of itself may be older than what its children were told.
func (t *turn) orders(next graph.Next) []order {
	canceled := map[string]bool{}
	for _, node := range next.Cancel {
		canceled[node] = true
	}
	held, yes := t.wantsPause() && t.end == "", "true"
	var out []order
	for _, c := range t.children {
		_, ours := c.Annotations[v1alpha1.AnnotationPaused]
		switch state := c.Spec.DesiredState; {
		case finished(c), state == v1alpha1.DesiredStopped:
		case canceled[placeOf(c).node], next.Nodes[placeOf(c).node].State.Ended():
			out = stopping(out, c)
		case held && state != v1alpha1.DesiredPaused:
			out = append(out, order{child: c, state: v1alpha1.DesiredPaused, because: &yes})
		case !held && ours:
			out = append(out, order{child: c, state: v1alpha1.DesiredRunning})
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
