package run

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// state is everything that a decision may depend on, read once, with the time.
type state struct {
	run *v1alpha1.Run
	// stored is the status that the API server has, if that of run differs: it has the first
	// attempt, which is not recorded yet, or not the report of a pod of another Run. nil: it is
	// that of run.
	stored *v1alpha1.RunStatus
	// revision is the revision of the Agent that the next pod runs; nil: there is none, and
	// notReadyMessage says why.
	revision        *snapshot.Revision
	notReadyMessage string
	// unsupported is why this operator cannot read the revision; nil: it can.
	unsupported *stored.UnsupportedError
	// pods are the Run's own, oldest attempt first.
	pods []corev1.Pod
	// volume is the volume of the Run, which other Runs may share; nil: it has none, or it
	// does not exist. sharedFilesLost: it was deleted after other Runs had changed its files.
	volume          *corev1.PersistentVolumeClaim
	sharedFilesLost bool
	// missingConfigMap names a ConfigMap that a pod which does not start waits for, and says what to do.
	missingConfigMap string
	// startupWarning is the last warning event about a pod that does not start.
	startupWarning string
	// decisions are the Decisions that were neither applied nor refused, the oldest first;
	// granted is by how much applied ones have raised limits.
	decisions []v1alpha1.Decision
	granted   task.Limits
	// finalDecisions are the names of Decisions that have been applied or refused.
	finalDecisions []string
	// missingDecision is a Decision that the runner reports to have acted on, and that does
	// not exist or says something else.
	missingDecision string
	// ancestors are the Runs that the Run is a part of, the nearest first; children are those
	// that its agents asked for.
	ancestors []children.Ancestor
	children  []v1alpha1.Run
	// agents are the Agents of the child Runs that it asks for, by name.
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
	// defaultTTL is the TTL of Runs that say nothing; 0: they are kept.
	defaultTTL time.Duration
	// assignable is what the cluster may assign to a pod, if it chooses its user, until the pod is
	// recorded.
	assignable runnerpod.Assignable
	// networkPolicies: the operator creates NetworkPolicies.
	networkPolicies bool
	now             time.Time
	// facts are the results of applying a plan.
	facts facts
}

// limits are the effective limits; before there is a revision the Run's own,
// with defaults.
func (s state) limits() limits {
	if s.revision == nil {
		return effective(limits{task: snapshot.LimitsOf(v1alpha1.AgentLimits{})}, s.run.Spec.Limits)
	}
	return effective(limitsOf(s.revision), s.run.Spec.Limits)
}

// attempt is the number of the current attempt, 0 before the first.
func (s state) attempt() int32 {
	if s.run.Status.Attempt == nil {
		return 0
	}
	return s.run.Status.Attempt.Number
}

// pod is the pod of the current attempt; nil: it is not there.
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

// progress is what the current attempt reported; nil: nothing yet.
func (s state) progress() *v1alpha1.RunProgress {
	p, a := s.run.Status.Progress, s.run.Status.Attempt
	if p == nil || a == nil || p.Attempt != a.Number || a.PodUID != "" && p.PodUID != "" && p.PodUID != a.PodUID {
		return nil
	}
	return p
}

// committed is the result that the current attempt stands by, by whichever
// channel it came; nil: none.
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

// hasSideEffects says whether anything may have been changed, by this attempt or one
// before it.
func (s state) hasSideEffects() bool {
	if p := s.run.Status.Progress; p != nil && p.Effects == v1alpha1.EffectsBegun {
		return true
	}
	t := runnerpod.Termination(s.pod())
	return t != nil && t.Effects == task.EffectsBegun
}

// pendingSince is since when the Run waits without an attempt at work. What it
// waited while it was paused, or queued, does not count.
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

// resultOf is a last word as status keeps it. A runner that is not ours may say
// anything, so every field is cut to what the schema takes.
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
