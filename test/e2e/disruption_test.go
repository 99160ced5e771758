//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// If the operator is killed, the runner continues, and the next operator settles the Run.
func TestOperatorRestartsUnderARun(t *testing.T) {
	p := newNamespace(t)
	p.agent("reader")
	run := p.run("reader")
	p.await(run, "reports", func(r *v1alpha1.Run) bool { return r.Status.Progress != nil })
	p.killOperators()
	seen := p.ends(run, "True Finished")
	if seen.Status.Attempt.Number != 1 || seen.Status.Disruptions != 0 {
		t.Errorf("attempt %d, %d disruptions", seen.Status.Attempt.Number, seen.Status.Disruptions)
	}
}

// A pod that is evicted, as when its cluster node is drained, is replaced, and the attempt
// is counted as a disruption.
func TestEvictedPodIsReplaced(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("sleeper")
	run := p.run("sleeper")
	p.await(run, "waits for its model", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Counts.ToolCalls == 1
	})
	pod := p.pod(run, 1)
	eviction := &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name}}
	if err := cluster.admin.SubResource("eviction").Create(t.Context(), pod, eviction); err != nil {
		t.Fatalf("evicting: %v", err)
	}
	seen := p.ends(run, "True Finished")
	if seen.Status.Attempt.Number != 2 || seen.Status.Disruptions != 1 || seen.Status.Failures != 0 {
		t.Errorf("attempt %d, %d disruptions, %d failures", seen.Status.Attempt.Number, seen.Status.Disruptions, seen.Status.Failures)
	}
}

// While a quota is full, the Run waits, and no attempt is counted.
func TestQuotaIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: {}}}}
	p.create(quota)
	p.agent("trivial")
	run := p.run("trivial")
	seen := p.await(run, "meets the quota", func(r *v1alpha1.Run) bool { return strings.Contains(succeeded(r), "QuotaExceeded") })
	if !strings.Contains(message(seen), "exceeded quota") {
		t.Errorf("the message is %q", message(seen))
	}
	if err := cluster.admin.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	if seen = p.ends(run, "True Finished"); seen.Status.Attempt.Number != 1 {
		t.Errorf("attempts that met the quota were counted: %d", seen.Status.Attempt.Number)
	}
}

// A ServiceAccount that is missing is created for the next attempt. While a quota does
// not let the operator create it, the Run waits and names it.
func TestMissingServiceAccountIsWaitedFor(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("trivial")
	p.ends(p.run("trivial"), "True Finished")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: v1alpha1.RunnerServiceAccount}}
	none := resource.MustParse("0")
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "none"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/serviceaccounts": none}}}
	p.create(quota)
	p.observed(quota)
	if err := cluster.admin.Delete(t.Context(), account); err != nil {
		t.Fatalf("deleting the ServiceAccount: %v", err)
	}
	run := p.run("trivial", func(r *v1alpha1.Run) { r.Name = "waits" })
	p.await(run, "names the ServiceAccount", func(r *v1alpha1.Run) bool {
		return strings.HasPrefix(succeeded(r), "Unknown") && strings.Contains(message(r), "ServiceAccount "+account.Name)
	})
	if err := cluster.admin.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	seen := p.ends(run, "True Finished")
	if s := seen.Status; s.Attempt.Number != 1 || s.Failures != 0 || s.Disruptions != 0 {
		t.Errorf("attempt %d, %d failures, %d disruptions, want attempt 1 and neither", s.Attempt.Number, s.Failures, s.Disruptions)
	}
	if err := cluster.admin.Get(t.Context(), client.ObjectKeyFromObject(account), account); err != nil {
		t.Errorf("the ServiceAccount is not there again: %v", err)
	}
}

// observed waits until the cluster has counted what a quota limits.
func (p *testNamespace) observed(quota *corev1.ResourceQuota) {
	p.t.Helper()
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(quota), quota)
		return len(quota.Status.Used) == len(quota.Spec.Hard), err
	})
	if err != nil {
		p.t.Fatalf("ResourceQuota %s has no status: %v", quota.Name, err)
	}
}
