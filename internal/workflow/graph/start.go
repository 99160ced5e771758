package graph

import "fmt"

// advance starts what may start, or, for a reason, ends what has not ended.
func (w *pass) advance(pieces []*node, why func() string) {
	for again := !w.seen.Paused; again && why() == ""; {
		w.evaluateReady(pieces, why)
		again = w.start(pieces, why)
	}
	if reason := why(); reason != "" {
		w.cancelRemaining(pieces, reason)
	}
}

// evaluateReady asks for each node that waits for nothing any more whether it has
// something to do, until that frees no other.
func (w *pass) evaluateReady(pieces []*node, why func() string) {
	for again := true; again; {
		again = false
		for _, p := range pieces {
			if p.State != Waiting || p.ready || !p.isReady() || why() != "" {
				continue
			}
			w.evaluateWhen(p)
			again = true
		}
	}
}

// isReady reports whether a node waits for nothing any more. For final nodes it is enough that
// the others have ended.
func (p *node) isReady() bool {
	for _, q := range p.dependencies {
		switch {
		case q.State == Succeeded, q.State == Skipped, q.State == Failed && q.Continue:
		case p.Final && q.State.Ended():
		default:
			return false
		}
	}
	return true
}

// evaluateWhen evaluates whether a node runs. One that waits for a reason was evaluated
// before.
func (w *pass) evaluateWhen(p *node) {
	if p.Conditional && p.Reason == "" {
		yes, err := w.evaluator.When(p.Name)
		if err != nil {
			w.problem(p, err)
			return
		}
		if !yes {
			p.State = Skipped
			return
		}
	}
	p.ready = true
	if p.Kind == Items && p.Total == 0 {
		w.expandItems(p)
	}
}

// expandItems evaluates how many items a node has.
func (w *pass) expandItems(p *node) {
	n, err := w.evaluator.Items(p.Name)
	room := w.childrenAllowed(p)
	switch {
	case err != nil:
		w.problem(p, err)
	case n > MaxItems:
		w.problem(p, tooManyItems(n))
	case n > room:
		w.problem(p, tooMany("%d items: the Run has room for %d more of the %d that it may have", n, max(0, room), MaxChildren))
	case n <= 0:
		p.State, p.ready = Succeeded, false
	default:
		p.Total = n
	}
}

func tooManyItems(n int) error {
	return tooMany("%d items: a node has at most %d; give it fewer", n, MaxItems)
}

func tooMany(format string, numbers ...any) error {
	return &ReasonError{ReasonTooManyItems, fmt.Errorf(format, numbers...)}
}

// childrenAllowed returns how many children a node may still have, without those that the
// other nodes still need.
func (w *pass) childrenAllowed(p *node) int {
	room := w.childrenLeft
	for _, q := range w.nodes {
		if q != p && q.Final == p.Final {
			room -= q.childrenNeeded()
		}
	}
	if p.Final && p.Started == 0 {
		return max(1, room)
	}
	return room
}

// childrenNeeded is how many children a node will need at least, as far as that is known.
func (p *node) childrenNeeded() int {
	switch {
	case p.State.Ended() || p.willFail() || p.Kind == Approval:
		return 0
	case p.Kind == Items && p.Total > 0:
		return p.Total - p.Started
	case p.State == Waiting:
		return 1
	}
	return 0
}

// start makes what may be made now and asks what may be asked. If that fails a
// node that ends the Run, nothing of it is made; if it fails another, what waits
// for that may begin: true.
func (w *pass) start(pieces []*node, why func() string) (again bool) {
	for _, p := range pieces {
		before := p.State
		w.startChildren(p)
		again = again || p.State.Ended() && !before.Ended()
		if why() == "" {
			continue
		}
		for _, q := range pieces {
			w.undo(q)
		}
		return false
	}
	for _, p := range pieces {
		if p.ready && p.Kind == Approval {
			p.State, p.ready = Running, false
		}
	}
	return again
}

// startChildren starts the children of a node, as many as may work at once.
func (w *pass) startChildren(p *node) {
	if !p.ready {
		return
	}
	if p.Kind == Approval {
		if err := w.evaluator.Input(p.Name, 0); err != nil {
			w.problem(p, err)
		}
		return
	}
	for p.active < p.parallel() && p.Started < p.limit() {
		reason, err := w.admit(p)
		switch {
		case isWaiting(reason):
			p.wait(reason)
			return
		case err != nil:
			w.undo(p)
			w.problem(p, err)
			return
		case reason != "":
			w.undo(p)
			p.fail(reason)
			return
		}
		p.State, p.Reason = Running, ""
		p.Started, p.active, p.started = p.Started+1, p.active+1, p.started+1
		w.childrenLeft--
	}
}

// admit says why the next child of a node does not start; nothing: it does.
func (w *pass) admit(p *node) (string, error) {
	number := p.number(p.Started)
	if w.childrenAllowed(p) < 1 {
		return "", tooMany("no room for one more: a Run has at most %d", MaxChildren)
	}
	if err := w.evaluator.Input(p.Name, number); err != nil {
		return "", err
	}
	if w.seen.Admit == nil {
		return "", nil
	}
	ok, reason := w.seen.Admit(p.Name, number)
	if ok {
		return "", nil
	}
	if reason == "" {
		reason = ReasonQueued
	}
	return reason, nil
}

// wait keeps a node waiting, and tells why if nothing of it works.
func (p *node) wait(reason string) {
	p.ready = false
	if p.active == 0 {
		p.Reason = reason
	}
}

// undo takes back what this pass starts of a node.
func (w *pass) undo(p *node) {
	w.childrenLeft += p.started
	p.Started, p.active, p.started, p.ready = p.Started-p.started, p.active-p.started, 0, false
	switch {
	case p.willFail():
		p.conclude()
	case p.State == Running && p.Started == 0 && p.Kind != Approval:
		p.State = Waiting
	}
}
