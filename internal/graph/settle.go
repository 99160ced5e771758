package graph

import "slices"

// settle is what the children of a node, or a person, say of it.
func (w *walk) settle(p *piece) {
	if p.State.Ended() {
		return
	}
	if p.Kind == Approval {
		w.answered(p)
		return
	}
	if p.Started+p.ahead == 0 {
		p.State = Waiting
		return
	}
	if p.State == Waiting || waits(p.Reason) {
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

// answered is what a person says to an approval that was asked.
func (w *walk) answered(p *piece) {
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
func (p *piece) settleOne() {
	p.Total = 1
	p.count(0)
	switch {
	case p.Succeeded == 1:
		p.State, p.Reason = Succeeded, ""
	case p.active == 0:
		p.fail(p.cause())
	}
}

// settleLoop is that of a loop: only the last iteration matters, since those
// before it succeeded.
func (w *walk) settleLoop(p *piece) {
	last := p.Started - 1
	p.Total = p.Started
	p.count(last)
	p.Succeeded += last
	if p.active > 0 {
		return
	}
	if p.Failed > 0 {
		p.fail(p.cause())
		return
	}
	met, err := w.evaluator.Until(p.Name, p.Started)
	switch {
	case err != nil:
		w.problem(p, err)
	case met:
		p.State, p.Reason = Succeeded, ""
	case p.doomed():
		p.conclude()
	case p.Started >= p.limit():
		p.fail(ReasonIterationLimit)
	default:
		p.ready = true
	}
}

// settleItems is that of items. Those that began before it was recorded how many
// there are were counted then: they are counted again.
func (w *walk) settleItems(p *piece) {
	p.count(0)
	if p.Total == 0 && !p.doomed() && !w.recount(p) {
		return
	}
	switch {
	case p.active == 0 && p.Started == p.Total && p.good():
		p.State, p.Reason = Succeeded, ""
	case p.doomed():
		p.conclude()
	case p.Failed > 0 && (!p.Continue || p.active == 0 && p.Started == p.Total):
		p.fail(p.cause())
	default:
		p.ready = true
	}
}

// good says that the items which ended make the node succeed: all of them, or one
// at least where the Run goes on. A doomed one needs all.
func (p *piece) good() bool {
	return p.Failed == 0 || p.Continue && !p.doomed() && p.Succeeded > 0
}

// recount asks how many items there are; false: that failed the node.
func (w *walk) recount(p *piece) bool {
	n, err := w.evaluator.Items(p.Name)
	if err != nil {
		w.problem(p, err)
		return false
	}
	p.Total = min(max(n, p.Started), MaxItems)
	return true
}

// count counts the children from a place on, as they are now.
func (p *piece) count(from int) {
	p.Succeeded, p.Failed, p.active = 0, 0, p.ahead
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

// cause is why the node fails: what dooms it, or the reason of the first child that
// failed, of itself rather than because it was stopped.
func (p *piece) cause() string {
	if p.doomed() {
		return p.Reason
	}
	first := ""
	for i := p.oldest(); i < p.Started; i++ {
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

// blame tells those that were stopped, because something else had ended the Run
// before that was recorded, from what ended it.
func (w *walk) blame() {
	guilty := w.seen.End != ""
	for _, p := range w.main {
		guilty = guilty || p.fatal() && p.Reason != reasonStopped
	}
	for _, p := range w.main {
		fresh := !p.was.State.Ended() && !p.remembered()
		if guilty && fresh && p.stopped() {
			p.fail(ReasonCancelled)
		}
	}
}

// stopped says that it failed, or did not all of its work, because children were
// told to stop.
func (p *piece) stopped() bool {
	if p.State != Succeeded {
		return p.failing() && p.Reason == reasonStopped
	}
	return slices.ContainsFunc(p.children, func(c *Child) bool {
		return c != nil && c.Done && !c.Succeeded && c.Reason == reasonStopped
	})
}

// remembered says that it was recorded before now that the node would fail.
func (p *piece) remembered() bool {
	return p.was.State == Running && p.was.Reason != "" && !waits(p.was.Reason)
}
