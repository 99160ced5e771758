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
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/revision"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// apply does what the plan says and decides nothing. It returns what came of it.
func (r *Reconciler) apply(ctx context.Context, w world, p plan) facts {
	if err := r.applyBeside(ctx, w, p); err != nil {
		return failed(p, err)
	}
	f, err := r.applyStep(ctx, w, p)
	if err != nil {
		return failed(p, err)
	}
	f.applied = true
	return f
}

// applyBeside sends what a plan has beside its step, once for each Reconcile.
func (r *Reconciler) applyBeside(ctx context.Context, w world, p plan) error {
	if w.facts.applied {
		return nil
	}
	for _, err := range []error{children.SetStates(ctx, r.client, p.setStates), r.restore(ctx, w, p.restore), r.remove(ctx, p.remove)} {
		if err != nil {
			return err
		}
	}
	if !startsFromVersion(w, p) {
		return nil
	}
	return revision.Ensure(ctx, r.client, r.live, w.version.ConfigMap(w.run.Namespace))
}

func (r *Reconciler) applyStep(ctx context.Context, w world, p plan) (facts, error) {
	switch {
	case p.claim != nil:
		return r.claim(ctx, w)
	case p.child != nil:
		return r.delegate(ctx, w, p)
	case p.create != nil:
		return r.create(ctx, w, p)
	case p.signal != nil:
		return facts{}, r.signal(ctx, p.signal, p.say)
	case p.free != nil:
		return facts{}, r.delete(ctx, p.free, "PersistentVolumeClaim")
	case p.forget:
		return facts{}, r.delete(ctx, w.run, "Run", client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return facts{}, nil
}

// startsFromVersion says whether the pod of the current attempt is yet to be created,
// or to mount the ConfigMap of its version: somebody may have deleted or replaced that
// since the attempt was claimed.
func startsFromVersion(w world, p plan) bool {
	a := w.run.Status.Attempt
	return a != nil && w.version != nil && w.version.Hash == a.AgentRevision && w.progress() == nil && w.run.Status.CompletionTime == nil && !p.settles()
}

// claim makes what has to be there before an attempt is claimed: for the first its place
// in the queue, and what its pod needs.
func (r *Reconciler) claim(ctx context.Context, w world) (facts, error) {
	if w.position.Limit > 0 && w.attempt() == 0 {
		t, err := r.queue.Take(ctx, w.run)
		if err != nil {
			return facts{}, err
		}
		if t.Number > 0 {
			return facts{queued: &t}, nil
		}
	}
	return facts{}, r.prepare(ctx, w)
}

// prepare makes what every pod of this Agent's version and namespace shares,
// before the attempt is claimed: so a claim is enough to go on from.
func (r *Reconciler) prepare(ctx context.Context, w world) error {
	if err := r.identity.Ensure(ctx, w.run.Namespace); err != nil {
		return fmt.Errorf("preparing namespace %s: %w", w.run.Namespace, err)
	}
	if w.version == nil {
		return nil
	}
	return revision.Ensure(ctx, r.client, r.live, w.version.ConfigMap(w.run.Namespace))
}

// create creates the pod of the attempt, and before it its volume and its NetworkPolicy.
func (r *Reconciler) create(ctx context.Context, w world, p plan) (facts, error) {
	if f, err := r.createVolume(ctx, w); f.needDecision() || err != nil {
		return f, err
	}
	release, err := r.fence(ctx, w)
	if err != nil {
		return facts{}, err
	}
	defer release()
	pod := p.create.DeepCopy()
	err = r.client.Create(ctx, pod)
	switch {
	case err == nil:
		return r.checkPod(ctx, w, p.create, pod)
	case apierrors.IsAlreadyExists(err):
		return r.findPod(ctx, w, p.create)
	case isAnswer(err):
		return facts{podRefused: err}, nil
	}
	return facts{}, fmt.Errorf("creating Pod %s: %w", pod.Name, err)
}

// checkPod deletes a pod whose sandbox is not what was asked for.
func (r *Reconciler) checkPod(ctx context.Context, w world, asked, stored *corev1.Pod) (facts, error) {
	changes := runnerpod.Changes(asked, stored, injectable(w))
	if changes == "" {
		return facts{created: stored}, nil
	}
	return facts{podChanges: changes}, r.delete(ctx, stored, "Pod", client.GracePeriodSeconds(0))
}

// findPod reads the pod that has the name of the attempt's, which may be another's.
func (r *Reconciler) findPod(ctx context.Context, w world, asked *corev1.Pod) (facts, error) {
	var pod corev1.Pod
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(asked), &pod); err != nil {
		return facts{}, fmt.Errorf("getting Pod %s: %w", asked.Name, err)
	}
	if runnerpod.BelongsTo(&pod, w.run) && runnerpod.AttemptOf(&pod) == int(w.attempt()) {
		return r.checkPod(ctx, w, asked, &pod)
	}
	return facts{podNameTaken: true}, nil
}

func (r *Reconciler) signal(ctx context.Context, pod *corev1.Pod, say task.Signals) error {
	value := string(encode(say))
	patch := encode(map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": map[string]string{v1alpha1.AnnotationSignals: value},
	}})
	err := r.client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching Pod %s: %w", pod.Name, err)
	}
	return nil
}

func (r *Reconciler) remove(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		if err := r.delete(ctx, &pods[i], "Pod"); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes exactly this object. That it is gone already is success.
func (r *Reconciler) delete(ctx context.Context, o client.Object, kind string, options ...client.DeleteOption) error {
	err := r.client.Delete(ctx, o, append(options, preconditions(o))...)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, o.GetName(), err)
	}
	return nil
}

// preconditions keep a delete from hitting a namesake.
func preconditions(o client.Object) client.Preconditions {
	uid := o.GetUID()
	return client.Preconditions{UID: &uid}
}
