package run

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// networkPolicies creates the NetworkPolicy of a class, and keeps it until it is released.
type networkPolicies interface {
	Acquire(ctx context.Context, namespace string, c egress.Class) (release func(), err error)
	// Has reports whether the cache has the policy in its current form.
	Has(ctx context.Context, namespace string, c egress.Class) bool
	// Exists reports whether the cache has a policy of a class with this label.
	Exists(ctx context.Context, namespace, label string) bool
}

// restoreNetworkPolicy restores the NetworkPolicy of the active pod. If the class of the pod is not known, an event
// reports that its policy is missing.
func (r *Reconciler) restoreNetworkPolicy(ctx context.Context, s state) error {
	pod := s.pod()
	if r.networkPolicies == nil || pod == nil || !runnerpod.IsAlive(pod) {
		return nil
	}
	class, isKnown := startedWith(s, pod)
	if !isKnown {
		label := pod.Annotations[v1alpha1.AnnotationEgress]
		if label != "" && !r.networkPolicies.Exists(ctx, pod.Namespace, label) {
			r.events.Eventf(s.run, pod, corev1.EventTypeWarning, "NetworkPolicyMissing", "Warn",
				"NetworkPolicy %s was deleted and cannot be created again, because Pod %s has not recorded its destinations: the network does not bound it. Stop the Run and create another", egress.Name(label), pod.Name)
		}
		return nil
	}
	if r.networkPolicies.Has(ctx, s.run.Namespace, class) {
		return nil
	}
	release, err := r.networkPolicies.Acquire(ctx, s.run.Namespace, class)
	if err != nil {
		return err
	}
	release()
	return nil
}

// startedWith returns the egress class with which a pod was created, as the pod records it: settings of the operator
// may have changed since. A pod of an earlier version, or one with very many destinations, has recorded only its label.
func startedWith(s state, pod *corev1.Pod) (class egress.Class, isKnown bool) {
	label := pod.Annotations[v1alpha1.AnnotationEgress]
	if class, is := egress.Parse(pod.Annotations[v1alpha1.AnnotationEgressClass], label); is {
		return class, true
	}
	if s.revision == nil {
		return egress.Class{}, false
	}
	class = runnerpod.EgressClass(podInputOf(s, s.attempt()))
	return class, class.Label() == label
}

// networkPolicyLost passes on events of a NetworkPolicy that was changed or deleted.
var networkPolicyLost = predicate.Funcs{
	CreateFunc:  func(event.CreateEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, wasPolicy := e.ObjectOld.(*networkingv1.NetworkPolicy)
		is, isPolicy := e.ObjectNew.(*networkingv1.NetworkPolicy)
		return wasPolicy && isPolicy && (was.Labels[v1alpha1.LabelEgress] != is.Labels[v1alpha1.LabelEgress] || !equality.Semantic.DeepEqual(was.Spec, is.Spec))
	},
}

// limitedBy returns the Runs whose pods a NetworkPolicy selects.
func (r runFinder) limitedBy(ctx context.Context, policy client.Object) []reconcile.Request {
	label, is := egress.LabelIn(policy.GetName())
	if !is {
		return nil
	}
	var pods corev1.PodList
	if err := r.client.List(ctx, &pods, client.InNamespace(policy.GetNamespace()), client.MatchingLabels{v1alpha1.LabelEgress: label}); err != nil {
		return nil // of a cache that has stopped
	}
	var out []reconcile.Request
	for i := range pods.Items {
		out = append(out, runsOfPod(ctx, &pods.Items[i])...)
	}
	return out
}

// acquireNetworkPolicy creates the NetworkPolicy of a pod before the pod. The policy is kept until release is called.
func (r *Reconciler) acquireNetworkPolicy(ctx context.Context, s state) (release func(), err error) {
	if r.networkPolicies == nil {
		return func() {}, nil
	}
	return r.networkPolicies.Acquire(ctx, s.run.Namespace, runnerpod.EgressClass(podInputOf(s, s.attempt())))
}
