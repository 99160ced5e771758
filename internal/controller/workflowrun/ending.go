package workflowrun

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// isEnding reports whether nothing can change the end of the Run any more: all nodes have ended except those of
// finally, or a failed node ends the Run.
func (e *evaluation) isEnding(next graph.Next) bool {
	for _, n := range e.revision.Spec.Nodes {
		if !next.Nodes[n.Name].State.Ended() {
			return e.evaluator.firstFailure() != ""
		}
	}
	return true
}

// endFromOutside returns the reason that ends the Run independently of its nodes; empty: there is none.
func (e *evaluation) endFromOutside() (reason, message string) {
	at := deadline(e.state)
	switch {
	case e.run.Spec.DesiredState == v1alpha1.DesiredStopped:
		return v1alpha1.ReasonStopped, stoppedMessage
	case !at.IsZero() && !e.now.Before(at):
		return v1alpha1.ReasonDeadlineExceeded, deadlineMessage(e.state)
	}
	if d, empty := e.main.Exhausted(); empty {
		return d.Reason(), e.usedUpMessage(d)
	}
	return "", ""
}

// usedUpMessage reports that a limit is used up.
func (e *evaluation) usedUpMessage(d children.Resource) string {
	text := fmt.Sprintf("The child Runs used %s, and %s allows them %s", d.Format(e.main.Used[d]), d.Field(), d.Format(max(e.main.Limit[d], 0)))
	if e.finally.Bounded[d] && len(e.revision.Spec.Finally) > 0 {
		text += fmt.Sprintf(", besides %s for finally", d.Format(e.finally.Limit[d]))
	}
	return text + ". Raise it and create a new Run"
}

// plannedEnd returns how the Run is going to end, if that is known. It does not change afterwards.
func (e *evaluation) plannedEnd() *v1alpha1.Result {
	if had := e.recordedEnd(); had != nil {
		return had
	}
	if e.endReason != "" {
		return &v1alpha1.Result{Reason: e.endReason, Message: task.Cut(e.endMessage, task.MaxMessage)}
	}
	if node := e.evaluator.firstFailure(); node != "" {
		return &v1alpha1.Result{Reason: v1alpha1.ReasonNodeFailed, Message: task.Cut(e.evaluator.explain(node), task.MaxMessage)}
	}
	return nil
}

// result returns how the Run ended.
func (e *evaluation) result(next graph.Next) (runstatus.Outcome, *v1alpha1.Result) {
	r := v1alpha1.Result{Committed: true, Reason: next.Reason, Message: next.Message}
	if next.Reason == "" {
		return e.finished(r)
	}
	if f := e.plannedEnd(); f != nil {
		room := task.MaxMessage - len(r.Message) - len(messageSeparator)
		r.Message = strings.TrimRight(task.Cut(f.Message, room), ". ") + messageSeparator + r.Message
	}
	r.Message = task.Cut(r.Message, task.MaxMessage)
	return runstatus.Outcome{Status: metav1.ConditionFalse, Reason: r.Reason, Message: r.Message}, &r
}

// finished returns the end of a Run whose nodes have all ended: with its output, whose evaluation may fail.
func (e *evaluation) finished(r v1alpha1.Result) (runstatus.Outcome, *v1alpha1.Result) {
	output, err := e.program.Output(e.evaluator.current())
	if err != nil {
		r.Reason = v1alpha1.ReasonInvalidOutput
		r.Message = task.Cut(fmt.Sprintf("The output cannot be computed: %v%s%s", err, messageSeparator, r.Message), task.MaxMessage)
		return runstatus.Outcome{Status: metav1.ConditionFalse, Reason: r.Reason, Message: r.Message}, &r
	}
	r.Reason, r.Output = v1alpha1.ReasonFinished, string(output)
	return runstatus.Outcome{Status: metav1.ConditionTrue, Reason: r.Reason, Message: r.Message}, &r
}

// messageSeparator separates the cause of the end from the numbers of the Run.
const messageSeparator = ". "
