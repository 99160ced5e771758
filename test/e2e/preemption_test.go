//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// seat is an extended resource of which the node has one: who preempts for it preempts
// no pod of another test.
const seat corev1.ResourceName = "e2e.deckhand.test/seat"

// A pod of a higher priority preempts the pod of a Run: the attempt is charged to
// disruptions, and the next one starts when there is room again.
func TestPreemptedPodIsReplaced(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	node := p.offerSeat()
	low, high := p.priorityClass("low", 1), p.priorityClass("high", 1000)
	p.agent("preempted", func(a *v1alpha1.Agent) {
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{PriorityClassName: low, Resources: takesSeat()}
	})
	run := p.run("preempted")
	p.await(run, "waits for its model", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Counts.ToolCalls == 1
	})
	first := p.pod(run, 1)
	if first.Spec.NodeName != node || first.Spec.Priority == nil || *first.Spec.Priority != 1 {
		t.Fatalf("the pod of attempt 1 is on node %s with priority %v, want %s and 1", first.Spec.NodeName, first.Spec.Priority, node)
	}
	preempting := p.preempt(high)
	seen := p.await(run, "waits for a node", func(r *v1alpha1.Run) bool { return strings.Contains(succeeded(r), v1alpha1.ReasonUnschedulable) })
	if s := seen.Status; s.Attempt.Number != 2 || s.Disruptions != 1 || s.Failures != 0 {
		t.Errorf("attempt %d, %d disruptions, %d failures, want attempt 2, 1 disruption, no failure", s.Attempt.Number, s.Disruptions, s.Failures)
	}
	p.killPod(preempting)
	seen = p.ends(run, "True Finished")
	if s := seen.Status; s.Attempt.Number != 2 || s.Disruptions != 1 || s.Failures != 0 {
		t.Errorf("at the end attempt %d, %d disruptions, %d failures", s.Attempt.Number, s.Disruptions, s.Failures)
	}
}

// offerSeat gives a node one seat until the end of the test, and returns its name.
func (p *testNamespace) offerSeat() string {
	p.t.Helper()
	var nodes corev1.NodeList
	if err := cluster.admin.List(p.t.Context(), &nodes); err != nil {
		p.t.Fatal(err)
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Spec.Unschedulable || len(node.Spec.Taints) > 0 {
			continue
		}
		p.patchSeat(p.t.Context(), node, `"1"`)
		p.t.Cleanup(func() { p.patchSeat(context.WithoutCancel(p.t.Context()), node, "null") })
		return node.Name
	}
	p.t.Fatal("no node takes pods")
	return ""
}

func (p *testNamespace) patchSeat(ctx context.Context, node *corev1.Node, quantity string) {
	p.t.Helper()
	patch := fmt.Sprintf(`{"status":{"capacity":{%q:%s},"allocatable":{%[1]q:%s}}}`, seat, quantity)
	if err := cluster.admin.Status().Patch(ctx, node.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		p.t.Fatalf("changing the capacity of node %s: %v", node.Name, err)
	}
}

func takesSeat() *corev1.ResourceRequirements {
	one := corev1.ResourceList{seat: resource.MustParse("1")}
	return &corev1.ResourceRequirements{Requests: one, Limits: one}
}

// priorityClass creates a PriorityClass and returns its name.
func (p *testNamespace) priorityClass(name string, value int32) string {
	p.t.Helper()
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: p.name + "-" + name}, Value: value}
	if err := cluster.admin.Create(p.t.Context(), class); err != nil {
		p.t.Fatalf("creating PriorityClass %s: %v", class.Name, err)
	}
	p.t.Cleanup(func() { _ = cluster.admin.Delete(context.WithoutCancel(p.t.Context()), class) })
	return class.Name
}

// preempt runs a pod of a PriorityClass that takes the seat, and waits until it is on
// the node.
func (p *testNamespace) preempt(class string) *corev1.Pod {
	p.t.Helper()
	no, yes := false, true
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "preempting"},
		Spec: corev1.PodSpec{
			PriorityClassName: class,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: &yes, RunAsUser: new(int64(65532)), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name: "c", Image: imageOf("modelserver"), Resources: *takesSeat(), ImagePullPolicy: corev1.PullIfNotPresent,
				SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			}},
		},
	}
	p.create(pod)
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return pod.Spec.NodeName != "", err
	})
	if err != nil {
		p.t.Fatalf("the pod with PriorityClass %s gets no node: %v", class, err)
	}
	return pod
}
