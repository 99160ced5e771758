package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/answer"
	"github.com/deckhand-dev/deckhand/internal/proof"
	"github.com/deckhand-dev/deckhand/internal/reach"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
)

// look reads everything that a decision may depend on. Absent is nil;
// unreadable is an error, never nil.
func (r *Reconciler) look(ctx context.Context, run *v1alpha1.Run) (world, error) {
	run.Status.Progress = untrusted.Progress(run.Status.Progress)
	w := world{run: run, now: r.now(), runner: r.runner, supply: r.supply, fenced: r.fencer != nil, unguarded: r.guard.Missing()}
	var err error
	if w.pods, err = r.pods(ctx, run); err != nil {
		return w, err
	}
	if err := r.volume(ctx, &w); err != nil {
		return w, err
	}
	if w.above, err = r.lineage(ctx, run); err != nil {
		return w, err
	}
	if run.Status.CompletionTime != nil {
		return w, r.lookAtChildren(ctx, &w) // a finished Run needs no version: what tidying needs is on its pods and its claim
	}
	if w.version, w.obstacle, err = r.version(ctx, run); err != nil {
		return w, err
	}
	if run.Status.Attempt == nil { // nobody has asked anything, and nobody is there to be told
		w.turn, err = r.turn(ctx, run)
		return w, err
	}
	if err := r.lookAtChildren(ctx, &w); err != nil {
		return w, err
	}
	if w.trouble, err = r.troubles(ctx, w); err != nil {
		return w, err
	}
	decisions, err := proof.Decisions(ctx, r.client, run)
	if err != nil {
		return w, err
	}
	w.decisions, w.granted = sorted(run, decisions)
	w.taken = answer.FinalNames(decisions)
	w.unproven, err = proof.Missing(ctx, r.live, run, decisions)
	return w, err
}

// pods are the Run's own, oldest attempt first. The pod of the current attempt is
// found by its name and UID as well, whatever became of its labels and owner.
func (r *Reconciler) pods(ctx context.Context, run *v1alpha1.Run) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelRun: run.Name}); err != nil {
		return nil, fmt.Errorf("listing Pods: %w", err)
	}
	own, err := r.whole(ctx, run, slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool { return !ours(&pod, run) }))
	if err != nil {
		return nil, err
	}
	if a := run.Status.Attempt; a != nil && a.PodUID != "" && !contains(own, a.PodUID) {
		pod, err := r.recordedPod(ctx, run)
		if err != nil {
			return nil, err
		}
		if pod != nil {
			own = append(own, *pod)
		}
	}
	slices.SortFunc(own, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return own, nil
}

// recordedPod reads the pod that the status records; nil: it is gone. That it is
// gone is believed only of the API server itself: the cache may be late, and has
// only pods with the label of a Run. Of a Run that finished some time ago the cache
// is enough: nothing depends on it but when the pod is deleted.
func (r *Reconciler) recordedPod(ctx context.Context, run *v1alpha1.Run) (*corev1.Pod, error) {
	readers := []client.Reader{r.client, r.live}
	if run.Status.CompletionTime != nil && r.now().Sub(run.Status.CompletionTime.Time) > leaveGrace {
		readers = readers[:1]
	}
	a := run.Status.Attempt
	for _, reader := range readers {
		var pod corev1.Pod
		err := reader.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: a.Pod}, &pod)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("getting Pod %s: %w", a.Pod, err)
		case ours(&pod, run) && string(pod.UID) == a.PodUID:
			return &pod, nil
		}
	}
	return nil, nil //nolint:nilnil // absent is a fact, not a fault
}

func contains(pods []corev1.Pod, uid string) bool {
	return slices.ContainsFunc(pods, func(p corev1.Pod) bool { return string(p.UID) == uid })
}

// version is the Agent's version that the Run started with or, before the
// first attempt, the current one. Where there is none the text says why.
func (r *Reconciler) version(ctx context.Context, run *v1alpha1.Run) (*snapshot.Version, string, error) {
	a := run.Status.Attempt
	if a == nil {
		return r.current(ctx, run)
	}
	v, err := r.stored(ctx, run.Namespace, a.Agent)
	if v != nil || err != nil {
		return v, "", err
	}
	// Not stored any more, or never: the attempt was claimed and the operator
	// died. The current version will do when it is the same.
	v, _, err = r.current(ctx, run)
	untouched := a.Number == 1 && a.PodUID == ""
	if v != nil && (v.Hash == a.Agent || untouched) {
		return v, "", err
	}
	return nil, fmt.Sprintf("The version of Agent %s that this Run started with is gone (ConfigMap %s); create another Run", run.Spec.Agent, snapshot.Name(a.Agent)), err
}

// stored is a version kept in its ConfigMap; nil: it is not there, or not what
// the hash promises.
func (r *Reconciler) stored(ctx context.Context, namespace, hash string) (*snapshot.Version, error) {
	var cm corev1.ConfigMap
	key := client.ObjectKey{Namespace: namespace, Name: snapshot.Name(hash)}
	err := r.client.Get(ctx, key, &cm)
	if apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, &cm)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // absent is a fact, not a fault
	}
	if err != nil {
		return nil, fmt.Errorf("getting ConfigMap %s: %w", key.Name, err)
	}
	v, err := snapshot.Read(&cm, hash)
	if err != nil {
		return nil, nil //nolint:nilnil,nilerr // somebody else's content is as good as none
	}
	return v, nil
}

// current is the version that the Agent has now, or the one that the Run was made
// for.
func (r *Reconciler) current(ctx context.Context, run *v1alpha1.Run) (*snapshot.Version, string, error) {
	if pinned(run) != "" {
		return r.frozen(ctx, run)
	}
	var agent v1alpha1.Agent
	err := r.client.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.Agent}, &agent)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("Agent %q not found in namespace %s; create it, or delete this Run and name another", run.Spec.Agent, run.Namespace), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("getting Agent %s: %w", run.Spec.Agent, err)
	}
	objects, err := reach.FromAgent(ctx, r.client, &agent)
	if err != nil {
		return nil, "", err
	}
	v, err := snapshot.Of(&agent, objects)
	if problem, is := errors.AsType[*snapshot.NotReadyError](err); is {
		return nil, fmt.Sprintf("Agent %q is not ready: %s", agent.Name, problem.Message), nil
	}
	return v, "", err
}
