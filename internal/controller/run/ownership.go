package run

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// A restoration has the owner and the labels that a pod of a Run must get again.
type restoration struct {
	pod    *corev1.Pod
	owners []metav1.OwnerReference
	labels map[string]string
}

// restorations returns the pods of a Run whose controller reference or labels were changed. Without the reference a pod
// would remain after its Run is deleted. Without the labels the operator would not get events of the pod, and no
// NetworkPolicy would select it. If a Run is deleted and its pods are to remain, the garbage collector removes
// references on purpose, so nothing is restored then.
func restorations(s state) []restoration {
	if !s.run.DeletionTimestamp.IsZero() {
		return nil
	}
	var out []restoration
	for i := range s.pods {
		pod := &s.pods[i]
		want := map[string]string{v1alpha1.LabelRun: s.run.Name}
		if n := runnerpod.AttemptOf(pod); n > 0 {
			want[v1alpha1.LabelAttempt] = strconv.Itoa(n)
		}
		if label := pod.Annotations[v1alpha1.AnnotationEgress]; label != "" {
			want[v1alpha1.LabelEgress] = label
		}
		maps.DeleteFunc(want, func(k, v string) bool { return pod.Labels[k] == v })
		if pod.DeletionTimestamp != nil || metav1.IsControlledBy(pod, s.run) && len(want) == 0 {
			continue
		}
		others := slices.DeleteFunc(slices.Clone(pod.OwnerReferences), func(o metav1.OwnerReference) bool {
			return o.UID == s.run.UID || o.Controller != nil && *o.Controller
		})
		owner := *metav1.NewControllerRef(s.run, v1alpha1.GroupVersion.WithKind("Run"))
		out = append(out, restoration{pod: pod, owners: append([]metav1.OwnerReference{owner}, others...), labels: want})
	}
	return out
}

// restore restores owner and labels of pods, unless the Run is being deleted, which the cache may not show yet.
func (r *Reconciler) restore(ctx context.Context, s state, all []restoration) error {
	if len(all) == 0 {
		return nil
	}
	var is v1alpha1.Run
	err := r.live.Get(ctx, client.ObjectKeyFromObject(s.run), &is)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("getting Run %s: %w", s.run.Name, err)
	}
	if is.UID != s.run.UID || !is.DeletionTimestamp.IsZero() { // also of a Run that is not found
		return nil
	}
	for _, to := range all {
		if err := r.restorePod(ctx, s, to); err != nil {
			return err
		}
	}
	return nil
}

// restorePod restores owner and labels of a pod. The NetworkPolicy of its egress label is created first: it may have
// been deleted while no pod had that label.
func (r *Reconciler) restorePod(ctx context.Context, s state, to restoration) error {
	class, isKnown := startedWith(s, to.pod)
	if _, hasLost := to.labels[v1alpha1.LabelEgress]; hasLost && isKnown && r.networkPolicies != nil {
		release, err := r.networkPolicies.Acquire(ctx, s.run.Namespace, class)
		if err != nil {
			return err
		}
		defer release()
	}
	patch := runnerpod.ToJSON(map[string]any{"metadata": map[string]any{
		"uid": to.pod.UID, "resourceVersion": to.pod.ResourceVersion, // neither a namesake nor an old copy
		"ownerReferences": to.owners, "labels": to.labels,
	}})
	err := r.client.Patch(ctx, to.pod.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("restoring the owner of Pod %s: %w", to.pod.Name, err)
	}
	return nil
}

// runsOfPod returns the Runs that a pod may belong to, by its task, its label and its owner. Their reconciliation
// checks whether it does.
func runsOfPod(_ context.Context, pod client.Object) []reconcile.Request {
	names := []string{runnerpod.TaskIn(pod).Run.Name, pod.GetLabels()[v1alpha1.LabelRun]}
	if c := metav1.GetControllerOf(pod); c != nil && c.Kind == "Run" && c.APIVersion == v1alpha1.GroupVersion.String() {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	var out []reconcile.Request
	for _, name := range slices.Compact(names) {
		if name != "" {
			out = append(out, reconcile.Request{NamespacedName: client.ObjectKey{Namespace: pod.GetNamespace(), Name: name}})
		}
	}
	return out
}
