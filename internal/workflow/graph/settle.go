package graph

import "slices"

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

// settleOne is the state of a node with one child.
func (p *node) settleOne() {
	p.Total = 1
	p.count(0)
	switch {
	case p.Succeeded == 1:
		p.State, p.Reason = Succeeded, ""
	case p.active == 0:
		p.fail(p.failureReason())
	}
}

// settleLoop is that of a loop: only the last iteration matters, since those
// before it succeeded.
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

// settleItems is that of items. Those that began before it was recorded how many
// there are were counted then: they are counted again.
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

// itemsSucceeded says that the items which ended make the node succeed: all of them, or one
// at least where the Run goes on. A doomed one needs all.
func (p *node) itemsSucceeded() bool {
	return p.Failed == 0 || p.Continue && !p.willFail() && p.Succeeded > 0
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

// count counts the children from a place on, as they are now.
func (p *node) count(from int) {
	p.Succeeded, p.Failed, p.active = 0, 0, p.activeAfterGap
	for i := from; i < p.Started; i++ {
		switch c := p.child(i); {
		case c == nil:
			p.Failed++
		case !c.Done:
			p.active++
		case c.Succeeded:
			p.Succeeded++
		default:
			p.Failed++
		}
	}
}

// failureReason is why the node fails: the reason that it has already, or that of the first
// child that failed by itself rather than because it was stopped.
func (p *node) failureReason() string {
	if p.willFail() {
		return p.Reason
	}
	first := ""
	for i := p.firstRelevant(); i < p.Started; i++ {
		reason := ReasonRunDeleted
		if c := p.child(i); c != nil {
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

// attributeStops gives nodes whose children were stopped the reason Cancelled if something
// else had ended the Run before that was recorded.
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

// stopped says that it failed, or did not all of its work, because children were
// told to stop.
func (p *node) stopped() bool {
	if p.State != Succeeded {
		return p.failing() && p.Reason == reasonStopped
	}
	return slices.ContainsFunc(p.children, func(c *Child) bool {
		return c != nil && c.Done && !c.Succeeded && c.Reason == reasonStopped
	})
}

// failureWasRecorded says that it was recorded before now that the node would fail.
func (p *node) failureWasRecorded() bool {
	return p.recorded.State == Running && p.recorded.Reason != "" && !isWaiting(p.recorded.Reason)
}
