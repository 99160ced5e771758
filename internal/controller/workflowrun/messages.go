package workflowrun

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// describe returns reason and message of an active Run.
func (e *evaluation) describe(next graph.Next, p *progress) runstatus.Outcome {
	say := func(reason, message string) runstatus.Outcome {
		return runstatus.Outcome{Status: metav1.ConditionUnknown, Reason: reason, Message: task.Cut(message, task.MaxMessage)}
	}
	at := e.nodesMessage(next)
	if r, is := e.retried(); is {
		at += ". " + r.text
	}
	switch {
	case e.endReason == v1alpha1.ReasonStopped:
		return say(v1alpha1.ReasonStopping, "Stopping: "+at)
	case e.wantsPause() && e.endReason == "":
		return say(v1alpha1.ReasonPaused, children.PausedMessage(e.run))
	case len(p.pending) > 0:
		return say(v1alpha1.ReasonAwaitingApproval, decisions.PendingMessage(e.run.Name, p.pending, decisions.FinalNames(e.decisions)))
	case p.result != nil:
		return say(v1alpha1.ReasonRunning, fmt.Sprintf("Ending with reason %s: %s", p.result.Reason, at))
	}
	if reason, message := e.waitMessage(next); reason != "" {
		return say(reason, message)
	}
	return say(v1alpha1.ReasonRunning, at)
}

// nodesMessage counts the nodes that have ended, and names the active ones.
func (e *evaluation) nodesMessage(next graph.Next) string {
	done, all := 0, e.nodes()
	var work []string
	for _, n := range all {
		switch status := next.Nodes[n.Name]; {
		case status.State.Ended():
			done++
		case status.State == graph.Running && n.ForEach != nil:
			work = append(work, fmt.Sprintf("%s (%d of %d)", n.Name, status.Succeeded+status.Failed, status.Total))
		case status.State == graph.Running && n.Loop != nil:
			work = append(work, fmt.Sprintf("%s (iteration %d)", n.Name, status.Started))
		case status.State == graph.Running:
			work = append(work, n.Name)
		}
	}
	text := fmt.Sprintf("%d of %d nodes done", done, len(all))
	switch len(work) {
	case 0:
		return text
	case 1:
		return text + "; " + work[0] + " is running"
	}
	return text + "; " + listed(work) + " are running"
}

// maxListed is how many nodes a message names.
const maxListed = 5

// listed joins names as in a sentence.
func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		names = append(names[:maxListed:maxListed], fmt.Sprintf("%d more", more))
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// waitMessage returns what a Run waits for if all of its active nodes wait; empty: one works.
func (e *evaluation) waitMessage(next graph.Next) (reason, message string) {
	if len(next.Start) > 0 {
		return "", ""
	}
	works := false
	for _, c := range e.children {
		if runstatus.IsFinished(c) {
			continue
		}
		works = true
		o := runstatus.OutcomeOf(c.Status)
		switch o.Reason {
		case v1alpha1.ReasonAwaitingApproval, v1alpha1.ReasonAwaitingAnswer, v1alpha1.ReasonQueued:
		default:
			return "", ""
		}
		if reason == "" || reason == v1alpha1.ReasonQueued {
			reason, message = o.Reason, fmt.Sprintf("Run %s of node %s: %s", c.Name, keyOf(c).node, o.Message)
		}
	}
	if works {
		return reason, message
	}
	return e.shortageMessage(next)
}

// shortageMessage returns what nodes wait for, if none is active.
func (e *evaluation) shortageMessage(next graph.Next) (reason, message string) {
	if r, is := e.retried(); is {
		return r.waits, r.text
	}
	for _, n := range e.nodes() {
		if status := next.Nodes[n.Name]; status.Reason == graph.ReasonQueued && !status.State.Ended() && !e.more {
			return v1alpha1.ReasonQueued, "Waiting for its turn: node " + n.Name
		}
	}
	return "", ""
}
