package graph

import (
	"cmp"
	"fmt"
	"strings"
)

// fatal says that its failure ends the Run.
func (p *piece) fatal() bool { return p.failing() && !p.Continue && !p.Final }

// culprit is the node that ended the Run by failing, when that was not ended by
// something else before; nil: none did.
func (w *walk) culprit(end string) *piece {
	for _, p := range w.main {
		if p.fatal() && p.Reason != ReasonCancelled && p.Reason != end {
			return p
		}
	}
	for _, p := range w.main {
		if p.fatal() && end == "" {
			return p
		}
	}
	return nil
}

// cut is why the Run ended before its nodes had; empty: they ended of themselves.
// What was said first stays: those that were not reached remember it.
func (w *walk) cut() string {
	for _, p := range w.main {
		if p.State == NotReached {
			return cmp.Or(p.Reason, w.seen.End, ReasonNodeFailed)
		}
	}
	if w.culprit(w.seen.End) != nil {
		return ReasonNodeFailed
	}
	for _, p := range w.main {
		if p.fatal() || p.failing() && p.Reason == ReasonCancelled {
			return w.seen.End
		}
	}
	return ""
}

// why is why nothing starts any more but final nodes.
func (w *walk) why() string { return cmp.Or(w.cut(), w.seen.End) }

// whyFinally is the same for final nodes, once it is their turn.
func (w *walk) whyFinally() string {
	for _, p := range w.main {
		if !p.State.Ended() {
			return ""
		}
	}
	return w.seen.FinallyEnd
}

// wind ends what has not ended.
func (w *walk) wind(pieces []*piece, reason string) {
	for _, p := range pieces {
		switch {
		case p.State == Waiting:
			p.State, p.Reason, p.Total, p.ready = NotReached, reason, 0, false
		case p.State == Running && !p.doomed() && !w.seen.Paused:
			p.fail(ReasonCancelled)
		}
	}
}

// cancels says that the children of a node are to be stopped: it is doomed, and
// nobody wants to know what they would have done.
func (w *walk) cancels(p *piece) bool {
	if !p.doomed() || p.active == 0 || w.seen.Paused {
		return false
	}
	return !p.Continue || p.Reason == ReasonCancelled
}

// told is what was worked out.
func (w *walk) told() Next {
	next := Next{Nodes: map[string]Status{}, Ended: true, Problems: w.problems}
	for _, p := range w.pieces {
		p.Total = max(p.Total, p.Started)
		next.Nodes[p.Name] = p.Status
		for i := p.Started - p.fresh; i < p.Started; i++ {
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

// end says how it ended.
func (w *walk) end(next *Next) {
	next.Reason = w.cut()
	next.Message = counted(w.main)
	if culprit := w.culprit(""); next.Reason == ReasonNodeFailed && culprit != nil {
		next.Failed = culprit.Name
		next.Message = fmt.Sprintf("Node %s failed: %s. %s", culprit.Name, culprit.Reason, next.Message)
		w.explain(culprit)
	}
	if len(w.finals) > 0 {
		next.Message += "; finally: " + counted(w.finals)
	}
}

// explain asks again what a node failed of before now: its status has only the
// reason.
func (w *walk) explain(p *piece) {
	err := w.again(p)
	if err != nil && w.problems[p.Name] == "" && reasonOf(err) == p.Reason {
		w.problems[p.Name] = err.Error()
	}
}

// again is the first error of the expressions of a node.
func (w *walk) again(p *piece) error {
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

// counted counts nodes by their states, and names a few that did not do all.
func counted(pieces []*piece) string {
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
	text := fmt.Sprintf("%d nodes: %d succeeded%s", len(pieces), count[Succeeded], few(partly))
	if len(pieces) == 1 {
		text = strings.Replace(text, "nodes", "node", 1)
	}
	for _, c := range []struct {
		n    int
		text string
	}{
		{len(failed), "failed" + few(failed)},
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

// named is how many nodes a message names of each sort.
const named = 3

// few is the beginning of a list, in parentheses.
func few(names []string) string {
	switch n := len(names); {
	case n == 0:
		return ""
	case n <= named:
		return " (" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf(" (%s and %d more)", strings.Join(names[:named], ", "), len(names)-named)
}
