//go:build e2e

package e2e

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Whoever holds the built-in role edit may do much in a namespace, and may not
// speak for the operator or the runner.
func TestEditorCannotSpeakForTheOperator(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.agent("changer")
	run := p.run("changer")
	pod := p.pod(run, 1)
	eve := p.as("eve", "edit")
	merge := func(text string) client.Patch { return client.RawPatch("application/merge-patch+json", []byte(text)) }
	strategic := func(text string) client.Patch {
		return client.RawPatch("application/strategic-merge-patch+json", []byte(text))
	}
	squat := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "changer-2"},
		Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Containers: []corev1.Container{{Name: "runner", Image: "evil"}}},
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: v1alpha1.RunnerServiceAccount}}
	owned := squat.DeepCopy()
	owned.Name, owned.Spec.ServiceAccountName = "changer-3", "default"
	owned.Labels = map[string]string{v1alpha1.LabelRun: run.Name, v1alpha1.LabelAttempt: "3"}
	token := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	for name, err := range map[string]error{
		"forging a stop":                eve.Patch(t.Context(), pod.DeepCopy(), merge(`{"metadata":{"annotations":{"deckhand.dev/signals":"{\"stop\":true}"}}}`)),
		"forging a decision":            eve.Patch(t.Context(), pod.DeepCopy(), merge(`{"metadata":{"annotations":{"deckhand.dev/signals":"{\"decisions\":[{\"name\":\"changer.s2c1\",\"request\":\"s2c1\",\"type\":\"Approve\"}]}"}}}`)),
		"forging a task":                eve.Patch(t.Context(), pod.DeepCopy(), merge(`{"metadata":{"annotations":{"deckhand.dev/task":"{}"}}}`)),
		"another image":                 eve.Patch(t.Context(), pod.DeepCopy(), strategic(`{"spec":{"containers":[{"name":"runner","image":"evil"}]}}`)),
		"squatting the next attempt":    eve.Create(t.Context(), squat),
		"the runner's token":            eve.SubResource("token").Create(t.Context(), account, token),
		"an ephemeral container":        eve.SubResource("ephemeralcontainers").Patch(t.Context(), pod.DeepCopy(), strategic(`{"spec":{"ephemeralContainers":[{"name":"e","image":"evil"}]}}`)),
		"another task by the ConfigMap": eve.Patch(t.Context(), p.version(t), merge(`{"data":{"snapshot.json":"{}"}}`)),
		"a result":                      eve.Status().Patch(t.Context(), run.DeepCopy(), merge(`{"status":{"progress":{"result":{"committed":true}}}}`)),
	} {
		if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: %v, want it refused", name, err)
		}
	}
	// She may make a pod that says it is the Run's; nobody believes it.
	owned.OwnerReferences = pod.OwnerReferences
	owned.Spec.SecurityContext, owned.Spec.Containers[0].SecurityContext = pod.Spec.SecurityContext, pod.Spec.Containers[0].SecurityContext
	if err := eve.Create(t.Context(), owned); err != nil && !apierrors.IsForbidden(err) {
		t.Errorf("a pod of her own: %v", err)
	}
	seen := p.ends(run, "True Finished")
	if seen.Status.Attempt.Number != 1 {
		t.Errorf("attempt %d was taken", seen.Status.Attempt.Number)
	}
}

// version is the ConfigMap of the only Agent of a place.
func (p *place) version(t *testing.T) *corev1.ConfigMap {
	t.Helper()
	var list corev1.ConfigMapList
	if err := cluster.admin.List(t.Context(), &list, client.InNamespace(p.name), client.HasLabels{v1alpha1.LabelSnapshot}); err != nil || len(list.Items) != 1 {
		t.Fatalf("listing versions: %v (%d)", err, len(list.Items))
	}
	return &list.Items[0]
}

// The runner may exec nothing and read nothing; exec finds no shell.
func TestRunnerHoldsOneRight(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.agent("changer")
	run := p.run("changer")
	pod := p.pod(run, 1)
	if len(pod.Spec.Containers) != 1 || len(pod.Spec.InitContainers) != 0 {
		t.Errorf("the pod has %d containers and %d init containers", len(pod.Spec.Containers), len(pod.Spec.InitContainers))
	}
	for _, e := range pod.Spec.Containers[0].Env {
		if strings.Contains(e.Value, key) || e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
			t.Errorf("the environment holds a secret: %+v", e)
		}
	}
	runner := p.as("nobody", "view")
	if err := runner.Delete(t.Context(), run.DeepCopy()); !apierrors.IsForbidden(err) {
		t.Errorf("a viewer deletes a Run: %v", err)
	}
	p.ends(run, "True Finished")
}
