package run

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// state is everything that a decision may depend on, read once, with the time.
type state struct {
	run *v1alpha1.Run
	// recorded is the status in the API server. That of run may have more or less; decisions rest on that of run.
	recorded recordedStatus
	// revision is the revision of the Agent that the next pod runs; nil: there is none, and notReadyMessage has the
	// cause.
	revision        *snapshot.Revision
	notReadyMessage string
	// unsupported is why this operator cannot read the revision; nil: it can.
	unsupported *stored.UnsupportedError
	// pods are the pods of the Run, oldest attempt first.
	pods []corev1.Pod
	// volume is the volume of the Run, which other Runs may share; nil: it has none, or it
	// does not exist. sharedFilesLost: it was deleted after other Runs had changed its files.
	volume          *corev1.PersistentVolumeClaim
	sharedFilesLost bool
	// use is how the other Runs that share the volume of a finished Run use it.
	use continuing.Use
	// source is the Run that this one continues; zero: none, or it is not needed any more.
	source continuing.Source
	// isNeeded: another Run continues this one, and has no copy of its files yet.
	isNeeded bool
	// missingConfigMap names a ConfigMap that a pod waits for, and what to do.
	missingConfigMap string
	// startupWarning is the last warning event about a pod that does not start.
	startupWarning string
	// decisions are the Decisions that were neither applied nor refused, oldest first; granted is by how much applied
	// Decisions raised limits.
	decisions []v1alpha1.Decision
	granted   task.Limits
	// finalDecisions are the names of Decisions that have been applied or refused.
	finalDecisions []string
	// missingDecision is a Decision that the runner reported to have acted on, and that does not exist or has other
	// content.
	missingDecision string
	// reusedRun is the Run whose result this Run has; nil: it works itself, or that Run was deleted.
	reusedRun *v1alpha1.Run
	// ancestors are the parent of the Run, its parent, and so on; children are the Runs that its agents requested.
	ancestors []children.Ancestor
	children  []v1alpha1.Run
	// agents are the Agents of requested child Runs, by name.
	agents map[string]*v1alpha1.Agent
	// position is its position in the queue of its Agent before the first attempt.
	position queue.Position
	// missingPolicies names the admission policies that are missing. policiesUnknown: the operator has
	// just started and has not checked them.
	missingPolicies string
	policiesUnknown bool
	// runner is the image of runners, unless the Agent has its own.
	runner      runnerpod.Image
	podDefaults runnerpod.Defaults
	// defaultTTL is the TTL of Runs without one; 0: they are kept.
	defaultTTL time.Duration
	// assignable is which users the cluster may assign to a pod, if the cluster chooses the user; only until the pod is
	// recorded.
	assignable runnerpod.Assignable
	// networkPolicies: the operator creates NetworkPolicies.
	networkPolicies bool
	now             time.Time
	// facts are the results of applying a plan.
	facts facts
}

// A recordedStatus is the status of a Run in the API server, for a state whose run has another one: with the first
// attempt, which is not recorded yet, or without a report of a pod of another Run. The zero value: both are equal.
type recordedStatus struct{ status *v1alpha1.RunStatus }

// differs reports whether the state has another status than the API server.
func (r recordedStatus) differs() bool { return r.status != nil }

// of returns a Run of the state with the status that the API server has.
func (r recordedStatus) of(run *v1alpha1.Run) *v1alpha1.Run {
	if !r.differs() {
		return run
	}
	has := *run
	has.Status = *r.status
	return &has
}

// assume returns the state with a changed status of its run, beside the recorded one.
func (s state) assume(change func(*v1alpha1.RunStatus)) state {
	run := *s.run
	run.Status = *s.run.Status.DeepCopy()
	change(&run.Status)
	s.recorded, s.run = recordedStatus{&s.run.Status}, &run
	return s
}

// storedRun returns the Run with the status that the API server has.
func (s state) storedRun() *v1alpha1.Run { return s.recorded.of(s.run) }

// isUnrecorded reports whether the Run has an attempt that is not in its status.
func (s state) isUnrecorded() bool {
	return s.recorded.differs() && s.storedRun().Status.Attempt == nil && s.run.Status.Attempt != nil
}

// limits returns the effective limits. Before there is a revision, these are the Run's own, with defaults.
func (s state) limits() limits {
	if s.revision == nil {
		return effective(limits{task: snapshot.LimitsOf(v1alpha1.AgentLimits{})}, s.run.Spec.Limits)
	}
	return effective(limitsOf(s.revision), s.run.Spec.Limits)
}

// attempt returns the number of the current attempt, 0 before the first.
func (s state) attempt() int32 {
	if s.run.Status.Attempt == nil {
		return 0
	}
	return s.run.Status.Attempt.Number
}

// pod returns the pod of the current attempt, or nil.
func (s state) pod() *corev1.Pod {
	a := s.run.Status.Attempt
	if a == nil {
		return nil
	}
	for i := range s.pods {
		if s.pods[i].Name == a.Pod && (a.PodUID == "" || string(s.pods[i].UID) == a.PodUID) {
			return &s.pods[i]
		}
	}
	return nil
}

// progress returns the report of the current attempt; nil: there is none yet.
func (s state) progress() *v1alpha1.RunProgress {
	p, a := s.run.Status.Progress, s.run.Status.Attempt
	if p == nil || a == nil || p.Attempt != a.Number || a.PodUID != "" && p.PodUID != "" && p.PodUID != a.PodUID {
		return nil
	}
	return p
}

// committed returns the result of the current attempt, from its report or its termination message, or nil.
func (s state) committed() *v1alpha1.Result {
	if p := s.progress(); p != nil && p.Result != nil && p.Result.Committed {
		return p.Result
	}
	if t := runnerpod.Termination(s.pod()); t != nil && t.Result.Committed && t.Attempt == int(s.attempt()) {
		r := resultOf(t.Result)
		return &r
	}
	return nil
}

// hasSideEffects reports whether this attempt or an earlier one may have had effects.
func (s state) hasSideEffects() bool {
	if p := s.run.Status.Progress; p != nil && p.Effects == v1alpha1.EffectsBegun {
		return true
	}
	t := runnerpod.Termination(s.pod())
	return t != nil && t.Effects == task.EffectsBegun
}

// pendingSince returns since when the Run has waited without an active attempt. Time in which it was paused or queued
// does not count.
func (s state) pendingSince() time.Time {
	since := s.run.CreationTimestamp.Time
	if pending := s.run.Status.Internal.PendingSince; pending != nil {
		since = pending.Time
	}
	if hasWorked(s) {
		since = endedAt(s)
	}
	resumed := s.run.Status.Internal.ResumedAt
	switch {
	case reasonOf(s.run) == v1alpha1.ReasonPaused && !wantsPause(s), reasonOf(s.run) == v1alpha1.ReasonQueued, reasonOf(s.run) == v1alpha1.ReasonRevisionUnsupported:
		return s.now // it goes on with this step
	case resumed != nil && resumed.After(since):
		return resumed.Time
	}
	return since
}

// resultOf returns the result of a termination message for the status. Custom runners may send any values, so every
// field is cut to the limits of the schema.
func resultOf(r task.Result) v1alpha1.Result {
	out := v1alpha1.Result{
		Committed: r.Committed,
		Reason:    task.Cut(string(r.Reason), task.MaxReason),
		Message:   task.Cut(r.Message, task.MaxMessage),
		Warning:   task.Cut(r.Warning, task.MaxWarning),
		Text:      task.Cut(r.Text, task.MaxText),
	}
	if len(r.Output) <= task.MaxOutput {
		out.Output = r.Output
	}
	for _, f := range r.Files {
		if len(f.Path) <= task.MaxPath && len(out.Files) < task.MaxFiles {
			out.Files = append(out.Files, v1alpha1.File{Path: f.Path, Size: f.Size})
		}
	}
	return out
}
