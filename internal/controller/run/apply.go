package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// apply does what the plan says and decides nothing. It returns the results as facts.
func (r *Reconciler) apply(ctx context.Context, s state, p plan) facts {
	if err := r.applyBeside(ctx, s, p); err != nil {
		return failed(p, err)
	}
	f, err := r.applyStep(ctx, s, p)
	if err != nil {
		return failed(p, err)
	}
	f.applied = true
	return f
}

// applyBeside sends the requests that a plan has besides its step, once for each Reconcile.
func (r *Reconciler) applyBeside(ctx context.Context, s state, p plan) error {
	if s.facts.applied {
		return nil
	}
	for _, err := range []error{children.SetStates(ctx, r.client, p.setStates), r.restore(ctx, s, p.restore), r.deletePods(ctx, p.remove)} {
		if err != nil {
			return err
		}
	}
	if !startsFromRevision(s, p) {
		return nil
	}
	return revision.Ensure(ctx, r.client, r.live, s.revision.ConfigMap(s.run.Namespace))
}

func (r *Reconciler) applyStep(ctx context.Context, s state, p plan) (facts, error) {
	switch {
	case p.nextAttempt != nil && p.nextAttempt.unrecorded:
		return r.beginFirst(ctx, s, p)
	case p.nextAttempt != nil:
		return r.prepareAttempt(ctx, s)
	case p.child != nil:
		return r.childRuns.create(ctx, s, p)
	case p.create != nil:
		return r.createPod(ctx, s, p)
	case p.recordPod != nil:
		return facts{}, r.volumes.recordOwner(ctx, s, p.recordPod)
	case p.signal != nil:
		return facts{}, r.sendSignals(ctx, p.signal, p.signals)
	case p.deleteVolume != nil:
		return facts{}, apierr.DeleteUnchanged(ctx, r.client, p.deleteVolume, "PersistentVolumeClaim") // another Run may have joined it
	case p.deleteRun:
		return facts{}, apierr.Delete(ctx, r.client, s.run, "Run", client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return facts{}, nil
}

// startsFromRevision reports whether the pod of the current attempt still needs the ConfigMap of its revision, to be
// created or to mount it. The ConfigMap may have been deleted since the attempt was recorded.
func startsFromRevision(s state, p plan) bool {
	a := s.run.Status.Attempt
	return a != nil && s.revision != nil && s.revision.Hash == a.AgentRevision && s.progress() == nil && s.run.Status.CompletionTime == nil && !p.settles()
}

// prepareAttempt creates what an attempt needs before it is recorded: the objects that its pod needs, and for the first
// attempt a place in the queue.
func (r *Reconciler) prepareAttempt(ctx context.Context, s state) (facts, error) {
	if s.position.Limit > 0 && s.attempt() == 0 {
		t, err := r.queue.Take(ctx, s.run)
		if err != nil {
			return facts{}, err
		}
		if t.Number > 0 {
			return facts{queued: &t}, nil
		}
	}
	if err := r.volumes.join(ctx, s); err != nil {
		return facts{}, err
	}
	return facts{}, r.prepare(ctx, s)
}

// prepare creates what all pods of the namespace and of the revision share, so that the operator can continue from a
// recorded attempt.
func (r *Reconciler) prepare(ctx context.Context, s state) error {
	if err := r.serviceAccounts.Ensure(ctx, s.run.Namespace); err != nil {
		return fmt.Errorf("preparing namespace %s: %w", s.run.Namespace, err)
	}
	if s.revision == nil {
		return nil
	}
	return revision.Ensure(ctx, r.client, r.live, s.revision.ConfigMap(s.run.Namespace))
}

// createPod creates the volume, the NetworkPolicy and then the pod of the attempt.
func (r *Reconciler) createPod(ctx context.Context, s state, p plan) (facts, error) {
	if f, err := r.volumes.create(ctx, s); f.needDecision() || err != nil {
		return f, err
	}
	release, err := r.acquireNetworkPolicy(ctx, s)
	if err != nil {
		return facts{}, err
	}
	defer release()
	pod := p.create.DeepCopy()
	err = r.client.Create(ctx, pod)
	switch {
	case err == nil:
		return r.checkPod(ctx, s, p.create, pod)
	case apierrors.IsAlreadyExists(err):
		return r.findPod(ctx, s, p.create)
	case isAnswer(err):
		return facts{podRefused: err}, nil
	}
	return facts{}, fmt.Errorf("creating Pod %s: %w", pod.Name, err)
}

// checkPod deletes a pod whose sandbox differs from the requested one. For any other it records the user of the pod.
func (r *Reconciler) checkPod(ctx context.Context, s state, asked, stored *corev1.Pod) (facts, error) {
	f := facts{podWithoutUser: runnerpod.Unassigned(asked, stored)}
	if f.podWithoutUser == "" {
		f.podChanges = runnerpod.Changes(asked, stored, allowedInjections(s), s.assignable)
	}
	if f.needDecision() {
		return f, apierr.Delete(ctx, r.client, stored, "Pod", client.GracePeriodSeconds(0))
	}
	return facts{created: stored}, r.volumes.recordOwner(ctx, s, stored)
}

// findPod reads the pod with the name of the attempt's pod, which may belong to another object.
func (r *Reconciler) findPod(ctx context.Context, s state, asked *corev1.Pod) (facts, error) {
	var pod corev1.Pod
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(asked), &pod); err != nil {
		return facts{}, fmt.Errorf("getting Pod %s: %w", asked.Name, err)
	}
	if runnerpod.BelongsTo(&pod, s.run) && runnerpod.AttemptOf(&pod) == int(s.attempt()) {
		return r.checkPod(ctx, s, asked, &pod)
	}
	return facts{podNameTaken: true}, nil
}

func (r *Reconciler) sendSignals(ctx context.Context, pod *corev1.Pod, say task.Signals) error {
	value := string(runnerpod.ToJSON(say))
	patch := runnerpod.ToJSON(map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": map[string]string{v1alpha1.AnnotationSignals: value},
	}})
	err := r.client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching Pod %s: %w", pod.Name, err)
	}
	return nil
}

func (r *Reconciler) deletePods(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := apierr.Delete(ctx, r.client, &pods[i], "Pod"); err != nil {
			return err
		}
	}
	return nil
}
