package run

import (
	"context"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// act does what the plan says and has no opinions. It returns the UID of a pod
// that it made and, where the cluster refused, the plan that follows from that.
func (r *Reconciler) act(ctx context.Context, w world, p plan) (plan, string, error) {
	if err := r.steer(ctx, p.steer); err != nil {
		return p, "", err
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
	case len(p.remove) > 0:
		return p, "", r.remove(ctx, p.remove)
	case p.free != nil:
		return p, "", client.IgnoreNotFound(r.client.Delete(ctx, p.free, preconditions(p.free)))
	case p.forget:
		return p, "", client.IgnoreNotFound(r.client.Delete(ctx, w.run, preconditions(w.run), client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	return p, "", nil
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
	cm := w.version.ConfigMap(w.run.Namespace)
	if err := r.client.Get(ctx, client.ObjectKeyFromObject(cm), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		return err
	}
	if err := r.client.Create(ctx, cm); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating ConfigMap %s: %w", cm.Name, err)
	}
	return nil
}

func (r *Reconciler) create(ctx context.Context, w world, p plan) (plan, string, error) {
	if instead, err := r.provide(ctx, w); instead != nil || err != nil {
		return or(instead, p), "", err
	}
	release, instead, err := r.fence(ctx, w)
	if instead != nil || err != nil {
		return or(instead, p), "", err
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
	what := alteredBy(asked, p.create, injectable(w))
	if what == "" {
		return p, string(p.create.UID), nil
	}
	err := r.client.Delete(ctx, p.create, preconditions(p.create), client.GracePeriodSeconds(0))
	if client.IgnoreNotFound(err) != nil {
		return p, "", fmt.Errorf("deleting Pod %s: %w", p.create.Name, err)
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
	if ours(&pod, w.run) && pod.Labels[v1alpha1.LabelAttempt] == strconv.Itoa(int(w.attempt())) {
		asked := p.create
		p.create = &pod
		return r.accept(ctx, w, p, asked)
	}
	return conflict(w), "", nil
}

func (r *Reconciler) signal(ctx context.Context, pod *corev1.Pod, say task.Signals) error {
	value := string(encode(say))
	patch := encode(map[string]any{"metadata": map[string]any{
		"uid":         pod.UID,
		"annotations": map[string]string{v1alpha1.AnnotationSignals: value},
	}})
	err := r.client.Patch(ctx, pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	return client.IgnoreNotFound(err)
}

func (r *Reconciler) remove(ctx context.Context, pods []corev1.Pod) error {
	for i := range pods {
		err := r.client.Delete(ctx, &pods[i], preconditions(&pods[i]))
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting Pod %s: %w", pods[i].Name, err)
		}
	}
	return nil
}

// preconditions keep a delete from hitting a namesake.
func preconditions(o client.Object) client.Preconditions {
	uid := o.GetUID()
	return client.Preconditions{UID: &uid}
}
