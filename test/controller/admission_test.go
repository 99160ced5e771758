package controller_test

import (
	"context"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

func TestFullQuotaIsWaitedFor(t *testing.T) {
	b := newFixture(t)
	none := corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "q"}, Spec: corev1.ResourceQuotaSpec{Hard: none}}
	b.Create(t, quota)
	quota.Status = corev1.ResourceQuotaStatus{Hard: none, Used: none} // no quota controller runs here
	if err := b.Admin.Status().Update(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown QuotaExceeded")
	if !strings.Contains(message(b.get()), "Raise it, or wait") {
		t.Errorf("message is %q", message(b.get()))
	}
	if err := b.Admin.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	b.eventually(func() bool { return b.reconcileUntilStable().Status.Attempt.PodUID != "" })
	if n := b.get().Status.Attempt.Number; n != 1 {
		t.Errorf("the quota burnt attempts: %d", n)
	}
}

// The server answers 409 where the quota was changed while it judged the pod:
// nothing is wrong with either.
func TestAQuotaThatChangedMeanwhileIsTriedAgain(t *testing.T) {
	b := newFixture(t)
	conflicts := 3
	b.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, isPod := o.(*corev1.Pod); isPod && conflicts > 0 {
			conflicts--
			return apierrors.NewConflict(schema.GroupResource{Resource: "resourcequotas"}, "q", errQuotaMoved)
		}
		return c.Create(ctx, o, opts...)
	}
	for range 3 {
		if err := b.reconcile(); !apierr.IsConflict(err) {
			t.Fatalf("reconciling: %v, want the conflict, which is tried again", err)
		}
		b.expect("Unknown Pending")
	}
	b.reconcileUntilStable()
	if a := b.get().Status.Attempt; a.Number != 1 || a.PodUID != string(b.onlyPod().UID) {
		t.Errorf("attempt is %+v, want the first with its pod", a)
	}
}

// A policy of somebody else's, as clusters have them.
func TestPolicyThatRefusesThePodEndsTheRun(t *testing.T) {
	b := newFixture(t)
	name := "no-pods-" + b.namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": b.namespace}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Validations: []admissionregistrationv1.Validation{{Expression: "false", Message: "no pods on Sundays"}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}},
	}
	b.Create(t, policy, binding)
	b.eventually(func() bool { // the API server needs a moment to heed it
		probe := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "probe"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
		return b.Admin.Create(t.Context(), probe, client.DryRunAll) != nil
	})
	b.reconcileUntilStable()
	b.expect("False AdmissionDenied")
	if !strings.Contains(message(b.get()), "no pods on Sundays") {
		t.Errorf("the message does not say why: %q", message(b.get()))
	}
}

func TestAdmissionThatRefusesThePodEndsTheRun(t *testing.T) {
	b := newFixture(t)
	b.Create(t, &corev1.LimitRange{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "small"},
		Spec:       corev1.LimitRangeSpec{Limits: []corev1.LimitRangeItem{{Type: corev1.LimitTypeContainer, Max: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")}}}},
	})
	b.eventually(func() bool {
		b.reconcileUntilStable()
		return b.get().Status.CompletionTime != nil || len(b.pods()) > 0
	})
	b.expect("False AdmissionDenied")
	if !strings.Contains(message(b.get()), "64Mi") {
		t.Errorf("the message does not say why: %q", message(b.get()))
	}
}
