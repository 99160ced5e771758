package run

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// observeSource reads the Run whose result a Run has, or the Run that it continues: before the first attempt the Run
// itself, then only its volume while pods copy from it. For a Run that has ended it reads whether another needs its
// files.
func observeSource(ctx context.Context, from continuing.Reader, s *state) (err error) {
	switch {
	case s.run.Status.CompletionTime != nil:
		s.isNeeded, err = continuing.IsNeeded(ctx, from.Cache, s.run, volumesOf(s.run)...)
	case children.ReuseOf(s.run) != "":
		s.reusedRun, err = children.ReusedRun(ctx, from.Cache, s.run)
	case s.run.Spec.ContinueFrom == nil:
	case s.attempt() == 0:
		s.source, err = from.Source(ctx, s.run)
	case copiesSource(*s, s.attempt()):
		s.source.VolumeClaim, err = from.VolumeClaim(ctx, s.run.Namespace, s.run.Status.ContinuedFrom.VolumeClaim)
		if err == nil && s.run.Status.Attempt.PodUID == "" {
			err = from.Blocked(ctx, s.run, &s.source)
		}
	}
	return err
}

// volumesOf returns the volume of a Run, if it has one.
func volumesOf(run *v1alpha1.Run) []string {
	if a := run.Status.Attempt; a != nil && a.VolumeClaim != "" {
		return []string{a.VolumeClaim}
	}
	return nil
}

// copiesSource reports whether the pod of an attempt copies the files of the Run that is continued: until a runner has
// reported, and in every pod that has no volume of its own.
func copiesSource(s state, attempt int32) bool {
	if s.run.Status.ContinuedFrom == nil {
		return false
	}
	p := s.run.Status.Progress
	return !s.durable() || p == nil || p.Attempt >= attempt
}

// sourceVolumeOf returns the volume from which the pod of an attempt copies; nil: it copies nothing.
func sourceVolumeOf(s state, attempt int32) *corev1.PersistentVolumeClaim {
	if !copiesSource(s, attempt) || sharesSource(s.run) {
		return nil
	}
	return s.source.VolumeClaim
}

// sharesSource reports whether a Run works on the files of the Run that it continues, also before it has started.
func sharesSource(run *v1alpha1.Run) bool {
	return run.Spec.ContinueFrom != nil && run.Spec.ContinueFrom.Workspace == v1alpha1.ContinueShare
}

// sourceInUse waits while another Run changes or copies the files, which began at the same time.
func sourceInUse(s state) (plan, bool) {
	problem := continuing.InUse(s.source)
	if problem == nil {
		return plan{}, false
	}
	p := waitingUnbounded(s, problem.Reason, problem.Message)
	p.wake = podEndWait
	return p, true
}

// A Run that waits for the end of a workflow, of another Run on the files, or of a pod, is reconciled again after this:
// no event wakes it.
const (
	workflowWait = 30 * time.Second
	podEndWait   = 5 * time.Second
)

// sourceNotReady waits for the Run that is continued, or ends the Run because it cannot be read.
func sourceNotReady(s state) (plan, bool) {
	if s.run.Spec.ContinueFrom == nil || s.attempt() > 0 {
		return plan{}, false
	}
	problem := continuing.Check(s.run, s.source)
	switch {
	case problem == nil:
		return plan{}, false
	case problem.IsFinal():
		return failure(problem.Reason, problem.Message), true
	case problem.Reason == v1alpha1.ReasonPending:
		return waitingFor(s, problem.Reason, problem.Message, byItself), true
	}
	p := waitingUnbounded(s, problem.Reason, problem.Message)
	switch {
	case s.source.Workflow != nil, s.source.User != nil:
		p.wake = workflowWait
	case s.source.Pod != nil, s.source.Copier != nil:
		p.wake = podEndWait
	}
	return p, true
}

// sourceLost ends a Run whose pod would copy files that no longer exist.
func sourceLost(s state) (plan, bool) {
	claim, from := s.source.VolumeClaim, s.run.Status.ContinuedFrom
	if s.run.Spec.ContinueFrom != nil && from == nil { // without it, the pod would begin from the start
		return failure(v1alpha1.ReasonNothingToContinue, "The status does not have the Run that this Run continues. Create it again, under another name"), true
	}
	if !copiesSource(s, s.attempt()) || claim != nil && claim.DeletionTimestamp == nil {
		return plan{}, false
	}
	problem := continuing.Deleted(from.Runs[0], from.VolumeClaim)
	return failure(problem.Reason, problem.Message), true
}

// sourceLostBeforeStart ends a Run whose pod cannot start because the files to copy no longer exist.
func sourceLostBeforeStart(s state) (plan, bool) {
	if runnerpod.HasFetched(s.pod()) || unschedulable(s.pod()) == "" && s.startupWarning == "" {
		return plan{}, false
	}
	return sourceLost(s)
}

// sourceChanged passes on events of Runs for which others may wait: the Run exists, has ended, or was deleted.
var sourceChanged = predicate.Funcs{
	CreateFunc: func(e event.CreateEvent) bool { return !e.IsInInitialList },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isRun := e.ObjectOld.(*v1alpha1.Run)
		is, alsoRun := e.ObjectNew.(*v1alpha1.Run)
		return isRun && alsoRun && !runstatus.IsFinished(was) && runstatus.IsFinished(is)
	},
}

// continuing returns the Runs that wait for a Run which they continue, or which works on the files of that Run.
func (r runFinder) continuing(ctx context.Context, source client.Object) []reconcile.Request {
	names := []string{source.GetName()}
	if run, is := source.(*v1alpha1.Run); is && runnerpod.SharesSource(run) {
		names = append(names, run.Status.ContinuedFrom.Runs...)
	}
	var out []reconcile.Request
	for _, name := range names {
		waiting, err := continuing.Unfinished(ctx, r.client, client.ObjectKey{Namespace: source.GetNamespace(), Name: name})
		if err != nil {
			return nil // the cache is closing
		}
		for i := range waiting {
			if waiting[i].Status.Attempt == nil {
				out = append(out, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&waiting[i])})
			}
		}
	}
	return out
}

// reused ends a child Run of a workflow that is retried, because its work was done before: it has that result.
func reused(s state) (plan, bool) {
	if children.ReuseOf(s.run) == "" {
		return plan{}, false
	}
	outcome, progress := children.Reuse(s.run, s.reusedRun)
	p := plan{reusedProgress: progress}
	return p.withOutcome(outcome), true
}
