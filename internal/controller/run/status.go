package run

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/condition"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// statusOf is a pure account of what was seen, decided and done. Of the old
// status it keeps only what nothing else remembers: attempts, budgets, times
// and the runner's own subtree.
func statusOf(w world, p plan, created string) v1alpha1.RunStatus {
	s := *w.run.Status.DeepCopy()
	if p.reason == "" {
		p = unchanged(w.run, p)
	}
	s.ObservedGeneration = w.run.Generation
	s.Target = target(w.run.Spec)
	now := metav1.NewTime(w.now)
	attempted(&s, p, created, now)
	if p.lastWord != nil {
		s.Progress = progressOf(w, *p.lastWord)
	}
	if reasonOf(w.run) == v1alpha1.ReasonPaused && p.reason != v1alpha1.ReasonPaused && !p.settles() {
		s.ResumedAt = &now
	}
	if p.settles() && s.CompletionTime == nil {
		s.CompletionTime = &now
	}
	s.Conditions = condition.Merge(s.Conditions, now, w.run.Generation, conditions(p)...)
	return s
}

// unchanged is a plan with the reason, message and outcome that stand already.
func unchanged(run *v1alpha1.Run, p plan) plan {
	p.reason, p.message = reasonOf(run), messageOf(run)
	if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		p.outcome = c.Status
	}
	return p
}

// attempted records a claim, and the pod that was made for one.
func attempted(s *v1alpha1.RunStatus, p plan, created string, now metav1.Time) {
	if p.claim != nil {
		s.Attempt = p.claim
		if s.StartTime == nil {
			s.StartTime = &now
		}
		switch p.charge {
		case chargeFailure:
			s.Failures++
		case chargeGround:
			s.Disruptions++
		case chargeNone:
		}
	}
	if p.adopt != nil {
		created = string(p.adopt.UID)
	}
	if created != "" && s.Attempt != nil {
		s.Attempt.PodUID = created
	}
}

// conditions are the Run's four, from the one reason.
func conditions(p plan) []metav1.Condition {
	outcome := p.outcome
	if outcome == "" {
		outcome = metav1.ConditionUnknown
	}
	active := outcome == metav1.ConditionUnknown
	message := task.Cut(p.message, task.MaxMessage)
	say := func(kind string, status metav1.ConditionStatus) metav1.Condition {
		return metav1.Condition{Type: kind, Status: status, Reason: p.reason, Message: message}
	}
	// The message stands once: repeated in four conditions it would be most of
	// the status.
	short := func(kind string, status bool) metav1.Condition {
		return metav1.Condition{Type: kind, Status: condition.When(status), Reason: p.reason}
	}
	return []metav1.Condition{
		say(v1alpha1.ConditionSucceeded, outcome),
		short(v1alpha1.ConditionFinished, !active),
		short(v1alpha1.ConditionReconciling, active),
		short(v1alpha1.ConditionStalled, outcome == metav1.ConditionFalse),
	}
}

func target(spec v1alpha1.RunSpec) string {
	if spec.Workflow != "" {
		return "workflow/" + spec.Workflow
	}
	return spec.Agent
}

// progressOf is what a dead runner could not report any more: its last word,
// in the place where its report would stand.
func progressOf(w world, t task.Termination) *v1alpha1.RunProgress {
	p := &v1alpha1.RunProgress{Version: task.Version}
	if had := w.run.Status.Progress; had != nil {
		p = had.DeepCopy()
	}
	p.Attempt = w.attempt()
	p.Sequence++
	p.Step = nil
	if t.Effects != "" {
		p.Effects = v1alpha1.EffectsBegun
	}
	if t.Usage.DurationSeconds >= p.Usage.DurationSeconds && t.Usage.InputTokens >= p.Usage.InputTokens {
		p.Counts, p.Usage = v1alpha1.Counts(t.Counts), v1alpha1.Usage(t.Usage) // a meter never falls
		p.Usage.Cost = task.Cut(p.Usage.Cost, task.MaxCost)
	}
	result := resultOf(t.Result)
	p.Result = &result
	return p
}

func reasonOf(run *v1alpha1.Run) string {
	if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		return c.Reason
	}
	return v1alpha1.ReasonPending
}

func messageOf(run *v1alpha1.Run) string {
	if c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded); c != nil {
		return c.Message
	}
	return ""
}

// sinceCompletion is how long a Run is final.
func sinceCompletion(w world) time.Duration {
	return w.now.Sub(w.run.Status.CompletionTime.Time)
}
