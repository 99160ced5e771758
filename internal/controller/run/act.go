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

// act does what the plan says and has no opinions. It returns the UID of a pod
// that it made and, where the cluster refused, the plan that follows from that.
func (r *Reconciler) act(ctx context.Context, w world, p plan) (plan, string, error) {
	for _, beside := range []error{children.SetStates(ctx, r.client, p.setStates), r.restore(ctx, w, p.restore), r.remove(ctx, p.remove)} {
		if beside != nil {
			return p, "", beside
		}
	}
	if startsFromVersion(w, p) {
		if err := revision.Ensure(ctx, r.client, r.live, w.version.ConfigMap(w.run.Namespace)); err != nil {
			return p, "", err
		}
	}
	switch {
	case p.claim != nil:
		p, err := r.claim(ctx, w, p)
		return p, "", err
	case p.child != nil:
		p, err := r.delegate(ctx, w, p)
		return p, "", err
	case p.create != nil:
		return r.create(ctx, w, p)
	case p.signal != nil:
		return p, "", r.signal(ctx, p.signal, p.say)
	case p.free != nil:
		return p, "", r.delete(ctx, p.free, "PersistentVolumeClaim")
	case p.forget:
		return p, "", r.delete(ctx, w.run, "Run", client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return p, "", nil
}

// startsFromVersion says whether the pod of the current attempt is yet to be created,
// or to mount the ConfigMap of its version: somebody may have deleted or replaced that
// since the attempt was claimed.
func startsFromVersion(w world, p plan) bool {
	a := w.run.Status.Attempt
	return a != nil && w.version != nil && w.version.Hash == a.AgentRevision && w.progress() == nil && w.run.Status.CompletionTime == nil && !p.settles()
}

// claim is what has to be there before an attempt is claimed: for the first its
// turn, and what its pod needs.
func (r *Reconciler) claim(ctx context.Context, w world, p plan) (plan, error) {
	if w.turn.limit > 0 && w.attempt() == 0 {
		t, err := r.takeTurn(ctx, w.run)
		if err != nil {
			return p, err
		}
		if t.place > 0 {
			return inLine(w.run.Spec.Agent, t), nil
		}
	}
	return p, r.prepare(ctx, w)
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

func (r *Reconciler) create(ctx context.Context, w world, p plan) (plan, string, error) {
	if instead, err := r.provide(ctx, w); instead != nil || err != nil {
		return or(instead, p), "", err
	}
	release, err := r.fence(ctx, w)
	if err != nil {
		return p, "", err
	}
	defer release()
	asked, pod := p.create.DeepCopy(), p.create
	err = r.client.Create(ctx, pod)
	if err == nil {
		return r.accept(ctx, w, p, asked)
	}
	if apierrors.IsAlreadyExists(err) {
		return r.taken(ctx, w, p)
	}
	refusal, known := refused(w, err)
	if !known {
		return p, "", fmt.Errorf("creating Pod %s: %w", pod.Name, err)
	}
	return refusal, "", nil
}

// or is what to do instead or, where there is nothing else, as planned.
func or(instead *plan, p plan) plan {
	if instead != nil {
		return *instead
	}
	return p
}

// accept takes the pod that the cluster made for the one that was asked for, or
// has none rather than one with an altered sandbox.
func (r *Reconciler) accept(ctx context.Context, w world, p plan, asked *corev1.Pod) (plan, string, error) {
	what := runnerpod.Changes(asked, p.create, injectable(w))
	if what == "" {
		return p, string(p.create.UID), nil
	}
	if err := r.delete(ctx, p.create, "Pod", client.GracePeriodSeconds(0)); err != nil {
		return p, "", err
	}
	return altered(w, what), "", nil
}

// taken finds a pod under the attempt's name: ours, or somebody else's, and the
// name is skipped.
func (r *Reconciler) taken(ctx context.Context, w world, p plan) (plan, string, error) {
	var pod corev1.Pod
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(p.create), &pod); err != nil {
		return p, "", fmt.Errorf("getting Pod %s: %w", p.create.Name, err)
	}
	if runnerpod.BelongsTo(&pod, w.run) && runnerpod.AttemptOf(&pod) == int(w.attempt()) {
		asked := p.create
		p.create = &pod
		return r.accept(ctx, w, p, asked)
	}
	return podNameConflict(w), "", nil
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
