package graph

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// endsRun reports whether the failure of a node ends the Run.
func (n *node) endsRun() bool { return n.failing() && !n.Continue && !n.Final }

// firstFailure returns the node whose failure ended the Run, unless something else had ended it before, or nil.
func (w *pass) firstFailure(end string) *node {
	for _, p := range w.mainNodes {
		if p.endsRun() && p.Reason != ReasonCancelled && p.Reason != end {
			return p
		}
	}
	for _, p := range w.mainNodes {
		if p.endsRun() && end == "" {
			return p
		}
	}
	return nil
}

// recordedEnd returns the reason with which the Run ended before all of its nodes; empty: it did not end before them.
// The first reason stays: nodes that were not reached have it.
func (w *pass) recordedEnd() string {
	for _, p := range w.mainNodes {
		if p.State == NotReached {
			return cmp.Or(p.Reason, w.seen.End, ReasonNodeFailed)
		}
	}
	if w.firstFailure(w.seen.End) != nil {
		return ReasonNodeFailed
	}
	for _, p := range w.mainNodes {
		if p.endsRun() || p.failing() && p.Reason == ReasonCancelled {
			return w.seen.End
		}
	}
	return ""
}

// endReason returns why only final nodes can start, or empty.
func (w *pass) endReason() string { return cmp.Or(w.recordedEnd(), w.seen.End) }

// finallyEndReason returns why final nodes cannot start either, after all other nodes have ended.
func (w *pass) finallyEndReason() string {
	for _, p := range w.mainNodes {
		if !p.State.Ended() {
			return ""
		}
	}
	return w.seen.FinallyEnd
}

// cancelRemaining marks waiting nodes NotReached and fails running nodes with Cancelled.
func (w *pass) cancelRemaining(pieces []*node, reason string) {
	for _, p := range pieces {
		switch {
		case p.State == Waiting:
			p.State, p.Reason, p.Total, p.ready = NotReached, reason, 0, false
		case p.State == Running && !p.willFail() && !w.seen.Paused:
			p.fail(ReasonCancelled)
		}
	}
}

// cancels reports whether the children of a node are stopped, because the node will fail in any case.
func (w *pass) cancels(p *node) bool {
	if !p.willFail() || p.active == 0 || w.seen.Paused {
		return false
	}
	return !p.Continue || p.Reason == ReasonCancelled
}

// result returns the result of the pass.
func (w *pass) result() Next {
	next := Next{Nodes: map[string]Status{}, Ended: true, Problems: w.problems}
	for _, p := range w.nodes {
		p.Total = max(p.Total, p.Started)
		next.Nodes[p.Name] = p.Status
		for i := p.Started - p.started; i < p.Started; i++ {
			next.Start = append(next.Start, Start{p.Name, p.number(i)})
		}
		if p.Kind == Approval && p.State == Running {
			next.Ask = append(next.Ask, p.Name)
		}
		if w.cancels(p) {
			next.Cancel = append(next.Cancel, p.Name)
		}
		next.Ended = next.Ended && p.State.Ended()
	}
	if next.Ended {
		w.end(&next)
	}
	return next
}

// end sets how the Run ended.
func (w *pass) end(next *Next) {
	next.Reason = w.recordedEnd()
	next.Message = summarize(w.mainNodes)
	if culprit := w.firstFailure(""); next.Reason == ReasonNodeFailed && culprit != nil {
		next.Failed = culprit.Name
		w.explainFailure(culprit)
	}
	if len(w.finals) > 0 {
		next.Message += "; finally: " + summarize(w.finals)
	}
}

// explainFailure evaluates again why a node failed in an earlier pass, because its status has only the reason.
func (w *pass) explainFailure(p *node) {
	err := w.firstError(p)
	if err != nil && w.problems[p.Name] == "" && reasonOf(err) == p.Reason {
		w.problems[p.Name] = err.Error()
	}
}

// firstError returns the first error of the expressions of a node.
func (w *pass) firstError(p *node) error {
	if p.Conditional && p.Started == 0 {
		if _, err := w.evaluator.When(p.Name); err != nil {
			return err
		}
	}
	switch {
	case p.Kind == Items:
		if n, err := w.evaluator.Items(p.Name); err != nil || n > MaxItems {
			return cmp.Or(err, tooManyItems(n))
		}
	case p.Kind == Loop && p.Started > 0 && p.Failed == 0:
		if _, err := w.evaluator.Until(p.Name, p.Started); err != nil {
			return err
		}
	}
	return w.evaluator.Input(p.Name, p.number(p.Started))
}

// summarize counts nodes by their states, and names the first failed ones and the first with failed items.
func summarize(pieces []*node) string {
	count := map[State]int{}
	var failed, partly []string
	cancelled := 0
	for _, p := range pieces {
		count[p.State]++
		switch {
		case p.State == Failed && p.Reason == ReasonCancelled:
			cancelled++
		case p.State == Failed:
			failed = append(failed, p.Name+": "+p.Reason)
		case p.State == Succeeded && p.Failed > 0:
			partly = append(partly, fmt.Sprintf("%s: %d of %d failed", p.Name, p.Failed, p.Total))
		}
	}
	text := fmt.Sprintf("%d nodes: %d succeeded%s", len(pieces), count[Succeeded], firstNames(partly))
	if len(pieces) == 1 {
		text = strings.Replace(text, "nodes", "node", 1)
	}
	for _, c := range []struct {
		n    int
		text string
	}{
		{len(failed), "failed" + firstNames(failed)},
		{cancelled, "cancelled"},
		{count[Skipped], "skipped"},
		{count[NotReached], "not reached"},
	} {
		if c.n > 0 {
			text += fmt.Sprintf(", %d %s", c.n, c.text)
		}
	}
	return text
}

// maxNamed is the maximum number of nodes that a message names in one list.
const maxNamed = 3

// firstNames returns the first names of a list, in parentheses.
func firstNames(names []string) string {
	switch n := len(names); {
	case n == 0:
		return ""
	case n <= maxNamed:
		return " (" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf(" (%s and %d more)", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}

// settleNode computes the state of a node from its children, or from a Decision.
func (w *pass) settleNode(p *node) {
	if p.State.Ended() {
		return
	}
	if p.Kind == Approval {
		w.settleApproval(p)
		return
	}
	if p.Started+p.activeAfterGap == 0 {
		p.State = Waiting
		return
	}
	if p.State == Waiting || isWaiting(p.Reason) {
		p.State, p.Reason = Running, ""
	}
	switch p.Kind {
	case Items:
		w.settleItems(p)
	case Loop:
		w.settleLoop(p)
	default:
		p.settleOne()
	}
}

// settleApproval computes the state of an approval.
func (w *pass) settleApproval(p *node) {
	if p.State != Running {
		return
	}
	switch v := w.seen.Approvals[p.Name]; {
	case v == Approved, p.Lenient && (v == Denied || v == Expired):
		p.State, p.Reason = Succeeded, ""
	case v == Denied, v == Expired:
		p.fail(ReasonDenied)
	}
}

// settleOne sets the state of a node with one child.
func (n *node) settleOne() {
	n.Total = 1
	n.count(0)
	switch {
	case n.Succeeded == 1:
		n.State, n.Reason = Succeeded, ""
	case n.active == 0:
		n.fail(n.failureReason())
	}
}

// settleLoop settles a loop: only the last iteration matters, since the earlier ones succeeded.
func (w *pass) settleLoop(p *node) {
	last := p.Started - 1
	p.Total = p.Started
	p.count(last)
	p.Succeeded += last
	if p.active > 0 {
		return
	}
	if p.Failed > 0 {
		p.fail(p.failureReason())
		return
	}
	met, err := w.evaluator.Until(p.Name, p.Started)
	switch {
	case err != nil:
		w.problem(p, err)
	case met:
		p.State, p.Reason = Succeeded, ""
	case p.willFail():
		p.conclude()
	case p.Started >= p.limit():
		p.fail(ReasonIterationLimit)
	default:
		p.ready = true
	}
}

// settleItems settles items. Items that began before their number was recorded are counted again.
func (w *pass) settleItems(p *node) {
	p.count(0)
	if p.Total == 0 && !p.willFail() && !w.recount(p) {
		return
	}
	switch {
	case p.active == 0 && p.Started == p.Total && p.itemsSucceeded():
		p.State, p.Reason = Succeeded, ""
	case p.willFail():
		p.conclude()
	case p.Failed > 0 && (!p.Continue || p.active == 0 && p.Started == p.Total):
		p.fail(p.failureReason())
	default:
		p.ready = true
	}
}

// itemsSucceeded reports whether the ended items make the node succeed: all of them, or at least one if the Run
// continues on failure. A node that will fail needs all.
func (n *node) itemsSucceeded() bool {
	return n.Failed == 0 || n.Continue && !n.willFail() && n.Succeeded > 0
}

// recount asks how many items there are; false: that failed the node.
func (w *pass) recount(p *node) bool {
	n, err := w.evaluator.Items(p.Name)
	if err != nil {
		w.problem(p, err)
		return false
	}
	p.Total = min(max(n, p.Started), MaxItems)
	return true
}

// count counts the current children from a position on.
func (n *node) count(from int) {
	n.Succeeded, n.Failed, n.active = 0, 0, n.activeAfterGap
	for i := from; i < n.Started; i++ {
		switch c := n.child(i); {
		case c == nil:
			n.Failed++
		case !c.Done:
			n.active++
		case c.Succeeded:
			n.Succeeded++
		default:
			n.Failed++
		}
	}
}

// failureReason returns why the node fails: its recorded reason, or the reason of the first child that failed and was
// not stopped.
func (n *node) failureReason() string {
	if n.willFail() {
		return n.Reason
	}
	first := ""
	for i := n.firstRelevant(); i < n.Started; i++ {
		reason := ReasonRunDeleted
		if c := n.child(i); c != nil {
			if !c.Done || c.Succeeded {
				continue
			}
			reason = c.Reason
		}
		if first == "" || first == reasonStopped {
			first = reason
		}
	}
	return first
}

// attributeStops sets the reason Cancelled for nodes whose children were stopped, if something else had ended the Run
// before their failure was recorded.
func (w *pass) attributeStops() {
	guilty := w.seen.End != ""
	for _, p := range w.mainNodes {
		guilty = guilty || p.endsRun() && p.Reason != reasonStopped
	}
	for _, p := range w.mainNodes {
		fresh := !p.recorded.State.Ended() && !p.failureWasRecorded()
		if guilty && fresh && p.stopped() {
			p.fail(ReasonCancelled)
		}
	}
}

// stopped reports whether the node failed, or is incomplete, because its children were stopped.
func (n *node) stopped() bool {
	if n.State != Succeeded {
		return n.failing() && n.Reason == reasonStopped
	}
	return slices.ContainsFunc(n.children, func(c *Child) bool {
		return c != nil && c.Done && !c.Succeeded && c.Reason == reasonStopped
	})
}

// failureWasRecorded reports whether an earlier pass recorded that the node would fail.
func (n *node) failureWasRecorded() bool {
	return n.recorded.State == Running && n.recorded.Reason != "" && !isWaiting(n.recorded.Reason)
}
