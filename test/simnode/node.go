package simnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// label marks simulated nodes; its value is the node's name. The same key is the
// taint that keeps other pods away.
const label = "simnode.test/simulated"

// Selector chooses the simulated node of a name.
func Selector(name string) map[string]string { return map[string]string{label: name} }

// Tolerations let a pod onto simulated nodes.
func Tolerations() []corev1.Toleration {
	return []corev1.Toleration{{Key: label, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}}
}

// capacity returns the capacity of the node, which no test exceeds.
func capacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourcePods:             resource.MustParse("20000"),
		corev1.ResourceCPU:              resource.MustParse("10000"),
		corev1.ResourceMemory:           resource.MustParse("100Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("100Ti"),
	}
}

// register creates the Node, or uses the Node of an earlier test.
func (n *Node) register(ctx context.Context) error {
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.options.Name, Labels: map[string]string{label: n.options.Name, corev1.LabelHostname: n.options.Name}},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: label, Value: n.options.Name, Effect: corev1.TaintEffectNoSchedule}}},
	}
	if _, err := n.admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Node %s: %w", n.options.Name, err)
	}
	since := metav1.NewTime(clock.Now())
	patch, err := json.Marshal(map[string]any{"status": corev1.NodeStatus{
		Capacity: capacity(), Allocatable: capacity(),
		Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "Simulated",
			LastHeartbeatTime: since, LastTransitionTime: since,
		}},
	}})
	if err != nil {
		return fmt.Errorf("encoding the status of Node %s: %w", n.options.Name, err)
	}
	if _, err := n.kubelet.CoreV1().Nodes().PatchStatus(ctx, n.options.Name, patch); err != nil {
		return fmt.Errorf("patching the status of Node %s: %w", n.options.Name, err)
	}
	return n.renew(ctx)
}

const (
	// renewal is how often the lease is renewed, as kubelets do.
	renewal = 10 * time.Second
	// leaseSeconds is how long the lease is valid, as with kubelets.
	leaseSeconds int32 = 40
)

// renew renews the lease, by which the control plane knows that the node is alive.
func (n *Node) renew(ctx context.Context) error {
	leases, at, seconds := n.kubelet.CoordinationV1().Leases(corev1.NamespaceNodeLease), metav1.NewMicroTime(clock.Now()), leaseSeconds
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: n.options.Name},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.options.Name, LeaseDurationSeconds: &seconds, RenewTime: &at},
	}
	patch, err := json.Marshal(map[string]any{"spec": lease.Spec})
	if err != nil {
		return fmt.Errorf("encoding the Lease of Node %s: %w", n.options.Name, err)
	}
	_, err = leases.Patch(ctx, lease.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renewing the Lease of Node %s: %w", n.options.Name, err)
	}
	return nil
}

// keepAlive renews the lease until ctx ends.
func (n *Node) keepAlive(ctx context.Context) {
	tick := time.NewTicker(renewal)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := n.renew(ctx); err != nil && ctx.Err() == nil {
				n.options.Failed(err)
			}
		}
	}
}

// Remove deletes the Node and its lease. Pods that are still there are left to the
// control plane, which deletes pods of missing nodes after a while.
func (n *Node) Remove(ctx context.Context) error {
	return errors.Join(
		ignoreNotFound(n.admin.CoreV1().Nodes().Delete(ctx, n.options.Name, metav1.DeleteOptions{})),
		ignoreNotFound(n.admin.CoordinationV1().Leases(corev1.NamespaceNodeLease).Delete(ctx, n.options.Name, metav1.DeleteOptions{})),
	)
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
