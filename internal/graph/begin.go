package graph

import "fmt"

// advance starts what may start, or, for a reason, ends what has not ended.
func (w *walk) advance(pieces []*piece, why func() string) {
	for again := !w.seen.Paused; again && why() == ""; {
		w.begin(pieces, why)
		again = w.start(pieces, why)
	}
	if reason := why(); reason != "" {
		w.wind(pieces, reason)
	}
}

// begin asks for each node that waits for nothing any more whether it has
// something to do, until that frees no other.
func (w *walk) begin(pieces []*piece, why func() string) {
	for again := true; again; {
		again = false
		for _, p := range pieces {
			if p.State != Waiting || p.ready || !p.free() || why() != "" {
				continue
			}
			w.weigh(p)
			again = true
		}
	}
}

// free says that it waits for nothing any more. Final nodes do what they can: to
// them it is enough that the others have ended.
func (p *piece) free() bool {
	for _, q := range p.waits {
		switch {
		case q.State == Succeeded, q.State == Skipped, q.State == Failed && q.Continue:
		case p.Final && q.State.Ended():
		default:
			return false
		}
	}
	return true
}

// weigh says whether a node has something to do. One that waits for a reason has
// been asked before.
func (w *walk) weigh(p *piece) {
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
		w.itemize(p)
	}
}

// itemize asks how many items a node has.
func (w *walk) itemize(p *piece) {
	n, err := w.evaluator.Items(p.Name)
	room := w.room(p)
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

// room is how many children a node may still have, with what was promised to the
// others set aside.
func (w *walk) room(p *piece) int {
	room := w.left
	for _, q := range w.pieces {
		if q != p && q.Final == p.Final {
			room -= q.owed()
		}
	}
	if p.Final && p.Started == 0 {
		return max(1, room)
	}
	return room
}

// owed is how many children it will need at least, as far as that is known.
func (p *piece) owed() int {
	switch {
	case p.State.Ended() || p.doomed() || p.Kind == Approval:
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
func (w *walk) start(pieces []*piece, why func() string) (again bool) {
	for _, p := range pieces {
		before := p.State
		w.launch(p)
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

// launch starts the children of a node, as many as may work at once.
func (w *walk) launch(p *piece) {
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
		case waits(reason):
			p.hold(reason)
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
		p.Started, p.active, p.fresh = p.Started+1, p.active+1, p.fresh+1
		w.left--
	}
}

// admit says why the next child of a node does not start; nothing: it does.
func (w *walk) admit(p *piece) (string, error) {
	number := p.number(p.Started)
	if w.room(p) < 1 {
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

// hold keeps a node waiting, and tells why if nothing of it works.
func (p *piece) hold(reason string) {
	p.ready = false
	if p.active == 0 {
		p.Reason = reason
	}
}

// undo takes back what this look starts of a node.
func (w *walk) undo(p *piece) {
	w.left += p.fresh
	p.Started, p.active, p.fresh, p.ready = p.Started-p.fresh, p.active-p.fresh, 0, false
	switch {
	case p.doomed():
		p.conclude()
	case p.State == Running && p.Started == 0 && p.Kind != Approval:
		p.State = Waiting
	}
}
