package run

import (
	"cmp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// statusOf is a pure account of what was seen, decided and done. Of the old
// status it keeps only what nothing else remembers: attempts, budgets, times
// and the runner's own subtree.
func statusOf(s state, p plan) v1alpha1.RunStatus {
	status := *s.run.Status.DeepCopy()
	if p.reason == "" {
		p = unchanged(s.run, p)
	}
	recordAttempt(&status, s, p)
	if p.termination != nil {
		status.Progress = progressOf(s, *p.termination)
	}
	if delegated := childMarks(s, p); len(delegated) > 0 {
		status.Internal.Delegated = delegated
	}
	p.outcomeOf().Put(&status, s.run, s.now)
	return status
}

// unchanged is a plan with the reason, message and outcome that stand already.
func unchanged(run *v1alpha1.Run, p plan) plan {
	return p.withOutcome(runstatus.OutcomeOf(run.Status))
}

// outcomeOf is what a plan says of the Run.
func (p plan) outcomeOf() runstatus.Outcome {
	return runstatus.Outcome{Status: p.outcome, Reason: p.reason, Message: p.message, Problem: p.problem}
}

// withOutcome is a plan that says something else of the Run.
func (p plan) withOutcome(o runstatus.Outcome) plan {
	p.outcome, p.reason, p.message = o.Status, o.Reason, o.Message
	return p
}

// recordAttempt records a claim, and the pod that was made for one.
func recordAttempt(status *v1alpha1.RunStatus, s state, p plan) {
	now := metav1.NewTime(s.now)
	if p.nextAttempt != nil {
		status.Attempt, status.Internal.PendingSince = p.nextAttempt.Attempt, &p.nextAttempt.pendingSince
		if status.StartTime == nil {
			status.StartTime = &now
		}
		switch p.charged {
		case budgetRetries:
			status.Failures++
		case budgetDisruptions:
			status.Disruptions++
		case budgetNone:
		}
	}
	if pod := cmp.Or(p.recordPod, s.facts.created); pod != nil && status.Attempt != nil {
		status.Attempt.PodUID = string(pod.UID)
	}
}

// progressOf is what a dead runner could not report any more: its last word,
// in the place where its report would stand.
func progressOf(s state, t task.Termination) *v1alpha1.RunProgress {
	p := &v1alpha1.RunProgress{Version: task.Version}
	if had := s.run.Status.Progress; had != nil {
		p = had.DeepCopy()
	}
	p.Attempt = s.attempt()
	p.Sequence++
	p.Step = nil
	if t.Effects != "" {
		p.Effects = v1alpha1.EffectsBegun
	}
	if t.Usage.DurationSeconds >= p.Usage.DurationSeconds && t.Usage.InputTokens >= p.Usage.InputTokens {
		p.Counts, p.Usage = v1alpha1.Counts(t.Counts), v1alpha1.Usage(t.Usage) // a meter never falls
		p.Usage.Cost, p.Usage.Duration = task.Cut(p.Usage.Cost, task.MaxCost), task.Duration(p.Usage.DurationSeconds)
	}
	result := resultOf(t.Result)
	if !slices.Contains(task.Reasons, task.Reason(result.Reason)) {
		result.Reason = v1alpha1.ReasonRunnerFailed // the message of the Run names the unknown one
	}
	if result.Committed {
		p.State, p.Pending = "", nil
	} else {
		result.Text, result.Files = "", nil
	}
	p.Result = &result
	return p
}

func reasonOf(run *v1alpha1.Run) string { return runstatus.OutcomeOf(run.Status).Reason }

func messageOf(run *v1alpha1.Run) string { return runstatus.OutcomeOf(run.Status).Message }

// messageWithWarning is the message of a result with its warning, which is kept whole.
func messageWithWarning(r v1alpha1.Result) string {
	message := r.Message
	if r.Reason == v1alpha1.ReasonFinished {
		message = cmp.Or(message, defaultResultMessage)
	}
	warning := task.Cut(r.Warning, task.MaxWarning)
	if message == "" {
		return warning
	}
	return strings.TrimSuffix(task.Cut(message, task.MaxMessage-len(warning)-len(". ")), ".") + ". " + warning
}

// defaultResultMessage is the message of a Run whose runner says nothing of its own.
const defaultResultMessage = "The work is done"
