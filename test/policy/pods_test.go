package policy_test

import (
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// editor holds what the built-in role edit allows in a namespace. An API server
// alone has no controller that aggregates the role, so the rules that matter
// are written out; the end-to-end tests use the role itself.
func editor(t *testing.T, s *fixture) client.Client {
	t.Helper()
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	return s.As(t, "eve", s.namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods", "configmaps", "secrets", "serviceaccounts"}, Verbs: all},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts/token", "pods/eviction"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/ephemeralcontainers"}, Verbs: []string{"patch", "update"}},
	)
}

func TestWhoMayEditPodsMayNotSpeakForTheOperator(t *testing.T) {
	s := newFixture(t)
	c := editor(t, s)
	s.annotate(t)
	pod := func() *corev1.Pod { return s.pod.DeepCopy() }
	merge := func(text string) client.Patch { return client.RawPatch(types.MergePatchType, []byte(text)) }
	strategic := func(text string) client.Patch { return client.RawPatch(types.StrategicMergePatchType, []byte(text)) }
	cases := map[string]struct {
		try  func() error
		want string
	}{
		"forging a stop": {func() error {
			return c.Patch(t.Context(), pod(), merge(`{"metadata":{"annotations":{"deckhand.dev/signals":"{\"stop\":true}"}}}`))
		}, "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"forging another task": {func() error {
			return c.Patch(t.Context(), pod(), merge(`{"metadata":{"annotations":{"deckhand.dev/task":"{}"}}}`))
		}, "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"taking the task away": {func() error {
			return c.Patch(t.Context(), pod(), merge(`{"metadata":{"annotations":null}}`))
		}, "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"hiding the pod from its Run": {func() error {
			return c.Patch(t.Context(), pod(), merge(`{"metadata":{"labels":{"deckhand.dev/run":null}}}`))
		}, "only the operator may change deckhand.dev/ labels of a runner pod"},
		"giving the runner another image": {func() error {
			return c.Patch(t.Context(), pod(), strategic(`{"spec":{"containers":[{"name":"runner","image":"evil"}]}}`))
		}, "only the operator may change images of a runner pod"},
		"an ephemeral container": {func() error {
			return c.SubResource("ephemeralcontainers").Patch(t.Context(), pod(), strategic(`{"spec":{"ephemeralContainers":[{"name":"e","image":"evil"}]}}`))
		}, "a runner pod must not have ephemeral containers"},
		"a pod with the runner's ServiceAccount": {func() error {
			return c.Create(t.Context(), &corev1.Pod{
				ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "mine-3"},
				Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Containers: []corev1.Container{{Name: "runner", Image: "evil"}}},
			})
		}, "only the operator may create pods with the ServiceAccount deckhand-runner: create a Run instead"},
		"a token of the runner's ServiceAccount": {func() error {
			return c.SubResource("token").Create(t.Context(), s.account.DeepCopy(), &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
				BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: s.pod.Name, UID: s.pod.UID},
			}})
		}, "issued to kubelets only"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.try()
			if !apitest.IsPolicy(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the server says %v, want it to say %q", err, tc.want)
			}
		})
	}
}

// The sandbox and the MCP servers are init containers, which run as long as the runner does:
// whoever changes the image of one gets its files and its Secret.
func TestWhoMayEditPodsMayNotChangeImagesOfInitContainers(t *testing.T) {
	s := newFixture(t)
	c := editor(t, s)
	always := corev1.ContainerRestartPolicyAlways
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "served-1"},
		Spec: corev1.PodSpec{
			ServiceAccountName: v1alpha1.RunnerServiceAccount,
			InitContainers: []corev1.Container{
				{Name: "install", Image: "runner"},
				{Name: "sandbox", Image: "toolbox", RestartPolicy: &always},
				{Name: "mcp-hub", Image: "hub", RestartPolicy: &always},
			},
			Containers: []corev1.Container{{Name: "runner", Image: "runner"}},
		},
	}
	s.Create(t, pod)
	for _, name := range []string{"install", "sandbox", "mcp-hub"} {
		patch := `{"spec":{"initContainers":[{"name":"` + name + `","image":"evil"}]}}`
		err := c.Patch(t.Context(), pod.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch)))
		if !apitest.IsPolicy(err) || !strings.Contains(err.Error(), "only the operator may change images of a runner pod") {
			t.Errorf("another image for %s: the server says %v", name, err)
		}
	}
}

// What is not Deckhand's stays as it was for everybody.
func TestOtherPodsAreNobodysBusiness(t *testing.T) {
	s := newFixture(t)
	s.annotate(t)
	c := editor(t, s)
	other := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: "hers"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
	if err := c.Create(t.Context(), other); err != nil {
		t.Fatalf("her own pod: %v", err)
	}
	for name, patch := range map[string]string{
		"her own pod, even with our annotation": `{"metadata":{"annotations":{"deckhand.dev/task":"{}"}}}`,
		"an image of her own pod":               `{"spec":{"containers":[{"name":"c","image":"d"}]}}`,
	} {
		if err := c.Patch(t.Context(), other.DeepCopy(), client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := c.Patch(t.Context(), s.pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"hers":"yes"},"labels":{"hers":"yes"}}}`))); err != nil {
		t.Errorf("her own annotation on a runner pod: %v", err)
	}
}

// annotate makes the stage's pod look like the operator's.
func (s *fixture) annotate(t *testing.T) {
	t.Helper()
	patch := `{"metadata":{"annotations":{"deckhand.dev/task":"{\"version\":1}"},"labels":{"deckhand.dev/run":"mine"}}}`
	if err := s.Admin.Patch(t.Context(), s.pod, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
