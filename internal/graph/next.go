package graph

import (
	"cmp"
	"errors"
)

// Next is what comes next. It changes nothing of what it is given. What it says,
// recorded and asked about again with the same children, says the same and starts
// nothing.
func (g *Graph) Next(s Seen, o Evaluator) Next {
	w := g.walk(s, o)
	w.watched()
	for _, i := range g.order { // what expressions read is known before they are asked
		w.settle(w.pieces[i])
	}
	w.blame()
	w.advance(w.main, w.why)
	w.advance(w.finals, w.whyFinally)
	return w.told()
}

// A walk is one look while it is worked out.
type walk struct {
	seen      Seen
	evaluator Evaluator
	pieces    []*piece // in the order of the nodes
	main      []*piece // those that are not final
	finals    []*piece
	left      int // of Seen.Room
	problems  map[string]string
}

// A piece is a node and how it stands.
type piece struct {
	Node
	Status
	was      Status   // as recorded
	waits    []*piece // for these
	children []*Child // by number, from the first; nil: not seen
	active   int      // that work
	ahead    int      // of active, that exist after a gap
	fresh    int      // of active, that this look starts
	ready    bool     // it may start a child, or ask
}

// walk gathers what is known of each node.
func (g *Graph) walk(s Seen, o Evaluator) *walk {
	w := &walk{seen: s, evaluator: o, left: s.Room, problems: map[string]string{}}
	for _, n := range g.nodes {
		p := &piece{Node: n, Status: recorded(s.Nodes[n.Name])}
		p.was = p.Status
		w.pieces = append(w.pieces, p)
		if n.Final {
			w.finals = append(w.finals, p)
		} else {
			w.main = append(w.main, p)
		}
	}
	for i, p := range w.pieces {
		for _, j := range g.waits[i] {
			p.waits = append(p.waits, w.pieces[j])
		}
	}
	for i := range s.Children {
		if j, there := g.index[s.Children[i].Node]; there {
			w.pieces[j].has(&s.Children[i])
		}
	}
	for _, p := range w.pieces {
		p.adopt()
	}
	return w
}

// adopt counts children that exist but are not recorded yet. Items are created in parallel: if a quota refused one of
// them, a later one may exist. Items after such a gap are found again when their turn comes; until then it is only known
// whether they are active. Other children are created one after the other.
func (p *piece) adopt() {
	if p.Kind != Items {
		p.Started = min(max(p.Started, len(p.children)), p.limit())
		return
	}
	for p.Started < len(p.children) && p.children[p.Started] != nil {
		p.Started++
	}
	p.Started = min(p.Started, p.limit())
	for _, c := range p.children[min(p.Started, len(p.children)):] {
		if c != nil && !c.Done {
			p.ahead++
		}
	}
}

// recorded is a status that makes sense.
func recorded(s Status) Status {
	if s.State != Running && !s.State.Ended() {
		s.State = Waiting
	}
	for _, n := range []*int{&s.Total, &s.Started, &s.Succeeded, &s.Failed, &s.Skipped} {
		*n = min(max(*n, 0), MaxChildren)
	}
	return s
}

// has takes note of a child.
func (p *piece) has(c *Child) {
	i := c.Number - p.number(0)
	if i < 0 || i >= p.limit() || p.State.Ended() {
		return
	}
	for len(p.children) <= i {
		p.children = append(p.children, nil)
	}
	p.children[i] = c
}

// child is the one at a place; nil: it is not there.
func (p *piece) child(i int) *Child {
	if i >= len(p.children) {
		return nil
	}
	return p.children[i]
}

// number is that of the child at a place.
func (p *piece) number(i int) int {
	if p.Kind == Loop {
		return i + 1
	}
	return i
}

// oldest is the place of the first child that still matters: of iterations only
// the last does.
func (p *piece) oldest() int {
	if p.Kind == Loop {
		return max(0, p.Started-1)
	}
	return 0
}

// limit is how many children it may have in all.
func (p *piece) limit() int {
	switch {
	case p.Kind == Approval:
		return 0
	case p.Kind == Loop:
		return max(1, min(p.MaxIterations, MaxChildren))
	case p.Kind == Items && p.Total > 0:
		return p.Total
	case p.Kind == Items:
		return MaxItems
	}
	return 1
}

// parallel is how many of them may work at once.
func (p *piece) parallel() int {
	if p.Kind == Items {
		return max(1, p.MaxParallel)
	}
	return 1
}

// doomed says that it starts nothing more and fails when nothing of it works.
func (p *piece) doomed() bool { return p.State == Running && p.Reason != "" && !waits(p.Reason) }

// waits says that a reason is one of those that keep a child waiting.
func waits(reason string) bool { return reason == ReasonQueued || reason == ReasonQuotaExceeded }

// failing says that it has failed, or will.
func (p *piece) failing() bool { return p.State == Failed || p.doomed() }

// fail fails a node, once nothing of it works.
func (p *piece) fail(reason string) {
	p.State, p.Reason, p.ready = Running, cmp.Or(reason, reasonFailed), false
	p.conclude()
}

// conclude ends a doomed node of which nothing works.
func (p *piece) conclude() {
	p.Skipped = max(0, p.Total-p.Started)
	if p.active == 0 {
		p.State = Failed
	}
}

// problem fails a node of an expression.
func (w *walk) problem(p *piece, err error) {
	w.problems[p.Name] = err.Error()
	p.fail(reasonOf(err))
}

// reasonOf is the reason of a node that an error of an Evaluator fails.
func reasonOf(err error) string {
	if e, ok := errors.AsType[*ReasonError](err); ok && e.Reason != "" {
		return e.Reason
	}
	return ReasonExpression
}
