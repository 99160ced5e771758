package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// statusOf computes the status from state, plan and facts. From the old status it keeps only what is recorded nowhere
// else: attempts, limits, times and the report of the runner.
func statusOf(s state, p plan) v1alpha1.RunStatus {
	status := *s.run.Status.DeepCopy()
	if p.reason == "" {
		p = unchanged(s.run, p)
	}
	recordAttempt(&status, s, p)
	if p.termination != nil {
		status.Progress = progressOf(s, *p.termination)
	}
	if p.reusedProgress != nil {
		status.Progress = p.reusedProgress
	}
	if delegated := childMarks(s, p); len(delegated) > 0 {
		status.Internal.Delegated = delegated
	}
	p.outcomeOf().WriteStatus(&status, s.run, s.now)
	return status
}

// unchanged returns a plan with the current reason, message and outcome.
func unchanged(run *v1alpha1.Run, p plan) plan {
	return p.withOutcome(runstatus.OutcomeOf(run.Status))
}

// outcomeOf returns the outcome that a plan gives the Run.
func (p plan) outcomeOf() runstatus.Outcome {
	return runstatus.Outcome{Status: p.outcome, Reason: p.reason, Message: p.message, Problem: p.problem}
}

// withOutcome returns a plan with another outcome.
func (p plan) withOutcome(o runstatus.Outcome) plan {
	p.outcome, p.reason, p.message = o.Status, o.Reason, o.Message
	return p
}

// recordAttempt records an attempt, or the pod that was created for it.
func recordAttempt(status *v1alpha1.RunStatus, s state, p plan) {
	now := metav1.NewTime(s.now)
	if p.nextAttempt != nil {
		status.Attempt, status.Internal.PendingSince = p.nextAttempt.Attempt, &p.nextAttempt.pendingSince
		if status.StartTime == nil {
			status.StartTime = &now
		}
		if status.ContinuedFrom == nil && s.source.Run != nil {
			status.ContinuedFrom = continuing.StatusOf(s.source.Run)
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
	if recorded := s.storedRun().Status; s.isUnrecorded() && p.nextAttempt == nil && status.Attempt.PodUID == "" && s.pod() != nil && !p.settles() { // it would fence the runner
		status.Attempt, status.StartTime, status.Internal.PendingSince = nil, recorded.StartTime, recorded.Internal.PendingSince
	}
}

// progressOf returns the termination message of a runner in place of its report.
func progressOf(s state, t task.Termination) *v1alpha1.RunProgress {
	p := &v1alpha1.RunProgress{Version: task.Version}
	if had := s.run.Status.Progress; had != nil {
		p = had.DeepCopy()
	}
	p.Attempt, p.PodUID = s.attempt(), s.run.Status.Attempt.PodUID
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
		p.State, p.Pending, p.ModelWait = "", nil, waitAtEnd(p.ModelWait, t)
		if result.Output != "" {
			p.ModelWait = nil
		}
	} else {
		result.Text, result.Output, result.Files = "", "", nil
	}
	p.Result = &result
	return p
}

func reasonOf(run *v1alpha1.Run) string { return runstatus.OutcomeOf(run.Status).Reason }

func messageOf(run *v1alpha1.Run) string { return runstatus.OutcomeOf(run.Status).Message }

// messageWithWarning returns the message of a result with its warning, which is never cut.
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

// defaultResultMessage is the message of a Run whose runner sends none.
const defaultResultMessage = "The work is done"

// updateStatus writes the status, and returns when to look again. A request that the API server refused is repeated
// after a while. A temporary failure is returned as an error, so that the queue backs off. After a conflict nothing is
// written, because the observed state is old.
func (r *Reconciler) updateStatus(ctx context.Context, s state, p plan) (ctrl.Result, error) {
	var failure error
	if f := s.facts.failure; f != nil {
		failure = f.err
	}
	if failure != nil && (apierr.IsConflict(failure) || ctx.Err() != nil) {
		return ctrl.Result{}, failure
	}
	if apierr.IsRefusal(failure) && !runstatus.HasProblem(s.run.Status) {
		log.FromContext(ctx).Info("The API server refused a request", "error", failure.Error())
	}
	if s.isUnrecorded() && s.facts.created != nil {
		r.unrecorded.remember(s.run, s.attemptWithPod())
	}
	if left := notYetRecorded(s, p); left > 0 && !r.unrecorded.isStopping() {
		return ctrl.Result{RequeueAfter: earlier(p.wake, left)}, nil
	}
	err := r.writeStatus(ctx, s, p, statusOf(s, p))
	switch {
	case err != nil:
		return ctrl.Result{}, errors.Join(failure, err)
	case failure != nil && !apierr.IsRefusal(failure):
		return ctrl.Result{}, failure
	}
	return ctrl.Result{RequeueAfter: p.wake}, nil
}

// writeStatus writes the status once, only if it changed, and then emits events. It is the only writer of status and
// events. With the first attempt it warns about references in the syntax of other tools, except in the prompt of a
// child Run, which is data.
func (r *Reconciler) writeStatus(ctx context.Context, s state, p plan, want v1alpha1.RunStatus) error {
	if p.deleteRun || !s.run.DeletionTimestamp.IsZero() {
		return nil
	}
	was := s.storedRun()
	if err := (runstatus.Updater{Client: r.client, Events: r.events, Spans: r.spans}).UpdateStatus(ctx, was, want, preconditionsOf(s, p)...); err != nil {
		return err
	}
	if warning := template.ForeignWarning("spec.prompt", s.run.Spec.Prompt); warning != "" && was.Status.Attempt == nil && want.Attempt != nil && children.ParentOf(s.run) == nil {
		r.events.Eventf(s.run, nil, corev1.EventTypeWarning, "ReferenceNotReplaced", "Warn", "%s", untrusted.Words(warning, task.MaxWarning))
	}
	return nil
}

// preconditionsOf returns what must be unchanged since the Run was observed:
//
//   - To reserve an attempt, to end a Run without a result, and to record a termination
//     message: the whole Run. The last report of a runner may arrive late, and has more than
//     its termination message. These writes cannot starve, because the runner has ended.
//   - To remove the report of a pod of an earlier Run: the spec, and that no other pod has
//     reported. That pod may still report, and would starve a stricter write.
//   - For any other write: the attempt, and the status and reason of Succeeded, which only
//     the operator writes.
//
// So each transition is written and announced once, even if an old copy of the Run is reconciled after it.
func preconditionsOf(s state, p plan) []statuspatch.Op {
	noAttempt := s.run.Status.Attempt == nil
	removesReport := noAttempt && s.recorded.differs()
	restsOnAll := p.nextAttempt != nil || p.termination != nil || noAttempt || p.settles() && s.committed() == nil
	succeeded := succeededAsSeen(s.run)
	if succeeded == nil || restsOnAll && !removesReport {
		return []statuspatch.Op{statuspatch.SameObject(s.run), statuspatch.SameVersion(s.run)}
	}
	ops := append(succeeded, statuspatch.SameObject(s.run))
	if removesReport {
		ops = append(ops, statuspatch.Same("/metadata/generation", s.run.Generation))
	}
	if !s.recorded.differs() {
		return append(ops, statuspatch.Same("/status/attempt/number", s.attempt()))
	}
	return append(ops, statuspatch.Same("/status/attempt", nil), sameReporter(s.storedRun().Status.Progress))
}

// succeededAsSeen tests the status and the reason of Succeeded; nil: the Run does not have it yet.
func succeededAsSeen(run *v1alpha1.Run) []statuspatch.Op {
	at := slices.IndexFunc(run.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionSucceeded })
	if at < 0 {
		return nil
	}
	c, path := run.Status.Conditions[at], fmt.Sprintf("/status/conditions/%d/", at)
	return []statuspatch.Op{
		statuspatch.Same(path+"type", c.Type),
		statuspatch.Same(path+"status", c.Status),
		statuspatch.Same(path+"reason", c.Reason),
	}
}
