package run

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/queue"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A world is everything that one decision may depend on, read once, the time
// included.
type world struct {
	run *v1alpha1.Run
	// version is the Agent's version that the next pod runs; nil: there is none,
	// and obstacle says why.
	version  *snapshot.Version
	obstacle string
	// unsupported is why this operator does not understand the version; nil: it does.
	unsupported *stored.UnsupportedError
	// pods are the Run's own, oldest attempt first.
	pods []corev1.Pod
	// claim is the Run's own, or the one that it shares; nil: it has none, or it is
	// not there. filesLost: it was deleted after others had begun to change its files.
	claim     *corev1.PersistentVolumeClaim
	filesLost bool
	// trouble is what the cluster says of a pod that does not start; empty: nothing.
	trouble string
	// decisions are what people decided and nothing is known of yet, oldest first;
	// granted is what they have raised limits by.
	decisions []v1alpha1.Decision
	granted   task.Limits
	// taken are the names of Decisions that have been applied or refused.
	taken []string
	// unproven is a Decision that the runner says it acted on and that is not there,
	// or says something else.
	unproven string
	// above are the Runs that it is a part of, the nearest first; children those that
	// its agents asked for.
	above    []children.Ancestor
	children []v1alpha1.Run
	// wanted are the Agents that it asks for, as they are now, by name.
	wanted map[string]*v1alpha1.Agent
	// position is where it stands among the Runs of its Agent before it has begun.
	position queue.Position
	// unguarded names the admission policies that are missing.
	unguarded string
	// runner is the image of runners, unless the Agent has its own.
	runner runnerpod.Image
	supply runnerpod.Defaults
	// fenced: NetworkPolicies are made.
	fenced bool
	now    time.Time
	// facts are what applying the first plan came to.
	facts facts
}

// limits are the effective limits; before there is a version the Run's own,
// with defaults.
func (w world) limits() limits {
	if w.version == nil {
		return effective(limits{task: snapshot.LimitsOf(v1alpha1.Limits{})}, w.run.Spec.Limits)
	}
	return effective(limitsOf(w.version), w.run.Spec.Limits)
}

// attempt is the number of the current attempt, 0 before the first.
func (w world) attempt() int32 {
	if w.run.Status.Attempt == nil {
		return 0
	}
	return w.run.Status.Attempt.Number
}

// pod is the pod of the current attempt; nil: it is not there.
func (w world) pod() *corev1.Pod {
	a := w.run.Status.Attempt
	if a == nil {
		return nil
	}
	for i := range w.pods {
		if w.pods[i].Name == a.Pod && (a.PodUID == "" || string(w.pods[i].UID) == a.PodUID) {
			return &w.pods[i]
		}
	}
	return nil
}

// progress is what the current attempt reported; nil: nothing yet.
func (w world) progress() *v1alpha1.RunProgress {
	p := w.run.Status.Progress
	if p == nil || p.Attempt != w.attempt() || p.Attempt == 0 {
		return nil
	}
	return p
}

// committed is the result that the current attempt stands by, by whichever
// channel it came; nil: none.
func (w world) committed() *v1alpha1.Result {
	if p := w.progress(); p != nil && p.Result != nil && p.Result.Committed {
		return p.Result
	}
	if t := runnerpod.Termination(w.pod()); t != nil && t.Result.Committed && t.Attempt == int(w.attempt()) {
		r := resultOf(t.Result)
		return &r
	}
	return nil
}

// effects says whether anything may have been changed, by this attempt or one
// before it.
func (w world) effects() bool {
	if p := w.run.Status.Progress; p != nil && p.Effects == v1alpha1.EffectsBegun {
		return true
	}
	t := runnerpod.Termination(w.pod())
	return t != nil && t.Effects == task.EffectsBegun
}

// pendingSince is since when the Run waits without an attempt at work. What it
// waited while it was paused, or queued, does not count.
func (w world) pendingSince() time.Time {
	since := w.run.CreationTimestamp.Time
	if pending := w.run.Status.Internal.PendingSince; pending != nil {
		since = pending.Time
	}
	if worked(w) {
		since = endedAt(w)
	}
	resumed := w.run.Status.Internal.ResumedAt
	switch {
	case reasonOf(w.run) == v1alpha1.ReasonPaused && !wantsPause(w), reasonOf(w.run) == v1alpha1.ReasonQueued, reasonOf(w.run) == v1alpha1.ReasonRevisionUnsupported:
		return w.now // it goes on with this step
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
