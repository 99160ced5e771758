//go:build e2e

package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// injecting is what a policy does to pods that gives every container a token of a
// cloud: there are such.
const injecting = `[
	JSONPatch{op: "add", path: "/spec/volumes/-", value: Object.spec.volumes{name: "cloud-token", emptyDir: Object.spec.volumes.emptyDir{}}},
	JSONPatch{op: "add", path: "/spec/initContainers/1/volumeMounts/-", value: Object.spec.initContainers.volumeMounts{name: "cloud-token", mountPath: "/var/run/cloud"}},
	JSONPatch{op: "add", path: "/spec/initContainers/1/env", value: [Object.spec.initContainers.env{name: "CLOUD_ROLE", value: "admin"}]}
]`

// What somebody else's policy gives to a sandbox, commands would have: the Run
// ends before it begins, unless its Agent allows just that.
func TestAnInjectedTokenEndsTheRun(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.mutate("pods", injecting, podLikeARunner(), func(o client.Object) bool {
		return slices.ContainsFunc(o.(*corev1.Pod).Spec.InitContainers[1].Env, func(v corev1.EnvVar) bool { return v.Name == "CLOUD_ROLE" })
	})
	p.agent("trivial", withShell)
	seen := p.ends(p.run("trivial"), "False SandboxAltered")
	for _, want := range []string{"the variable CLOUD_ROLE", "the mount /var/run/cloud of the volume cloud-token", "sandbox.allowInjected"} {
		if !strings.Contains(message(seen), want) {
			t.Errorf("the message lacks %q: %s", want, message(seen))
		}
	}
	if seen.Status.Progress != nil {
		t.Errorf("the runner began: %+v", seen.Status.Progress)
	}
	p.gone("trivial-1")
	p.agent("writer", withShell, func(a *v1alpha1.Agent) {
		a.Spec.Sandbox.AllowInjected = []string{"CLOUD_ROLE", "/var/run/cloud"}
	})
	p.ends(p.run("writer"), "True Finished")
}

// gone waits until a pod is gone.
func (p *testNamespace) gone(pod string) {
	p.t.Helper()
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: p.name, Name: pod}, &corev1.Pod{})
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		p.t.Errorf("Pod %s is still there: %v", pod, err)
	}
}

// podLikeARunner has containers and volumes where a runner's has them.
func podLikeARunner() *corev1.Pod {
	template := deployment(metav1.ObjectMeta{}).Spec.Template.Spec
	first := template.Containers[0]
	first.ReadinessProbe, first.Name = nil, "install"
	second := *first.DeepCopy()
	second.Name, second.Env = "sandbox", []corev1.EnvVar{{Name: "GOFLAGS", Value: "-mod=mod"}}
	template.InitContainers = []corev1.Container{first, second}
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "probe"}, Spec: template}
}

// enforceSizes has volumes of the namespace be full when they are full: a policy asks
// the test cluster for it.
func (p *testNamespace) enforceSizes() {
	p.t.Helper()
	const patch = `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"deckhand.test/enforce-size": "true"}}]`
	p.mutate("persistentvolumeclaims", patch, claimOf("probe", "1Mi"), func(o client.Object) bool {
		return o.GetAnnotations()["deckhand.test/enforce-size"] != ""
	})
}

// mutate has a policy of the cluster change objects of the namespace as they are
// made, and waits until it does to one like them.
func (p *testNamespace) mutate(resources, patch string, probe client.Object, bites func(client.Object) bool) {
	p.t.Helper()
	for _, o := range mutating(p.name, resources, patch) {
		if err := cluster.admin.Create(p.t.Context(), o); err != nil {
			p.t.Skipf("this cluster takes no MutatingAdmissionPolicy: %v", err)
		}
		p.t.Cleanup(func() { _ = cluster.admin.Delete(context.WithoutCancel(p.t.Context()), o) })
	}
	probe.SetNamespace(p.name)
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		made := probe.DeepCopyObject().(client.Object)
		err := cluster.admin.Create(ctx, made, client.DryRunAll)
		return err == nil && bites(made), err
	})
	if err != nil {
		p.t.Fatalf("the policy does not bite: %v", err)
	}
}

// mutating is a policy that changes what is made in a namespace.
func mutating(namespace, resources, patch string) []client.Object {
	meta := metav1.ObjectMeta{Name: namespace + "-" + resources}
	fail := admissionregistrationv1.Fail
	rule := admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{resources}},
	}
	return []client.Object{
		&admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			FailurePolicy: &fail, ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
				ResourceRules:     []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: rule}},
			},
			Mutations: []admissionregistrationv1.Mutation{{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: patch},
			}},
		}},
		&admissionregistrationv1.MutatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name}},
	}
}
