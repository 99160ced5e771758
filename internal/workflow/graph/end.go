package graph

import (
	"cmp"
	"fmt"
	"strings"
)

// endsRun reports whether the failure of a node ends the Run.
func (p *node) endsRun() bool { return p.failing() && !p.Continue && !p.Final }

// firstFailure returns the node whose failure ended the Run, unless something else had ended
// it before; nil: there is none.
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

// recordedEnd is why the Run ended before its nodes had; empty: they all ended. The first
// reason stays: nodes that were not reached have it.
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

// endReason is why nothing starts any more but final nodes.
func (w *pass) endReason() string { return cmp.Or(w.recordedEnd(), w.seen.End) }

// finallyEndReason is the same for final nodes, once all others have ended.
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

// cancels reports whether the children of a node are to be stopped: the node will fail
// whatever they do.
func (w *pass) cancels(p *node) bool {
	if !p.willFail() || p.active == 0 || w.seen.Paused {
		return false
	}
	return !p.Continue || p.Reason == ReasonCancelled
}

// result returns what was computed.
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

// end says how it ended.
func (w *pass) end(next *Next) {
	next.Reason = w.recordedEnd()
	next.Message = summarize(w.mainNodes)
	if culprit := w.firstFailure(""); next.Reason == ReasonNodeFailed && culprit != nil {
		next.Failed = culprit.Name
		next.Message = fmt.Sprintf("Node %s failed: %s. %s", culprit.Name, culprit.Reason, next.Message)
		w.explainFailure(culprit)
	}
	if len(w.finals) > 0 {
		next.Message += "; finally: " + summarize(w.finals)
	}
}

// explainFailure asks again what a node failed of before now: its status has only the
// reason.
func (w *pass) explainFailure(p *node) {
	err := w.firstError(p)
	if err != nil && w.problems[p.Name] == "" && reasonOf(err) == p.Reason {
		w.problems[p.Name] = err.Error()
	}
}

// firstError is the first error of the expressions of a node.
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

// summarize counts nodes by their states, and names a few that did not do all.
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

// maxNamed is how many nodes a message names of each sort.
const maxNamed = 3

// firstNames is the beginning of a list, in parentheses.
func firstNames(names []string) string {
	switch n := len(names); {
	case n == 0:
		return ""
	case n <= maxNamed:
		return " (" + strings.Join(names, ", ") + ")"
	}
	return fmt.Sprintf(" (%s and %d more)", strings.Join(names[:maxNamed], ", "), len(names)-maxNamed)
}
