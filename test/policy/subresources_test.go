package policy_test

import (
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// scheduler may do with pods what schedulers and agents of nodes do.
func scheduler(t *testing.T, s *fixture) client.Client {
	t.Helper()
	return s.As(t, "scheduler", s.namespace,
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get", "list", "watch"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/status", "pods/resize", "pods/ephemeralcontainers"}, Verbs: []string{"patch", "update"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods/binding", "bindings"}, Verbs: []string{"create"}},
	)
}

// bindingOf binds the stage's pod to a node.
func bindingOf(s *fixture, annotations, labels map[string]string) *corev1.Binding {
	return &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: s.pod.Name, Annotations: annotations, Labels: labels},
		Target:     corev1.ObjectReference{Kind: "Node", Name: "node-1"},
	}
}

func strategicPatch(text string) client.Patch {
	return client.RawPatch(types.StrategicMergePatchType, []byte(text))
}

// The API server takes annotations and labels of a pod from its status and from its
// binding as well.
func TestOnlyTheOperatorChangesMetadataOfARunnerPodInASubresource(t *testing.T) {
	s := newFixture(t)
	s.annotate(t)
	c := scheduler(t, s)
	status := func(patch string) func() error {
		return func() error { return c.Status().Patch(t.Context(), s.pod.DeepCopy(), strategicPatch(patch)) }
	}
	task := map[string]string{"deckhand.dev/task": "{}"}
	run := map[string]string{"deckhand.dev/run": "other"}
	const binding = "a Binding must not have deckhand.dev/ annotations or labels: only the operator may set them on a runner pod"
	cases := map[string]struct {
		try  func() error
		want string
	}{
		"another task": {status(`{"metadata":{"annotations":{"deckhand.dev/task":"{}"}}}`), "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"no task":      {status(`{"metadata":{"annotations":{"deckhand.dev/task":null}}}`), "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"a signal":     {status(`{"metadata":{"annotations":{"deckhand.dev/signals":"{\"stop\":true}"}}}`), "only the operator may change deckhand.dev/ annotations of a runner pod"},
		"another Run":  {status(`{"metadata":{"labels":{"deckhand.dev/run":"other"}}}`), "only the operator may change deckhand.dev/ labels of a runner pod"},
		"no Run":       {status(`{"metadata":{"labels":{"deckhand.dev/run":null}}}`), "only the operator may change deckhand.dev/ labels of a runner pod"},
		"a task by a binding": {func() error {
			return c.SubResource("binding").Create(t.Context(), s.pod.DeepCopy(), bindingOf(s, task, nil))
		}, binding},
		"a Run by a binding": {func() error {
			return c.SubResource("binding").Create(t.Context(), s.pod.DeepCopy(), bindingOf(s, nil, run))
		}, binding},
		"a task by an old Binding": {func() error { return c.Create(t.Context(), bindingOf(s, task, nil)) }, binding},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := tc.try()
			if !apitest.IsPolicy(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the server says %v, want it to say %q", err, tc.want)
			}
		})
	}
	s.checkMetadata(t)
}

// What needs no guard: the API server drops these changes.
func TestTheAPIServerDropsMetadataInOtherSubresources(t *testing.T) {
	s := newFixture(t)
	s.annotate(t)
	s.own(t)
	c := scheduler(t, s)
	const patch = `{"metadata":{"annotations":{"deckhand.dev/task":"{}"},"labels":{"deckhand.dev/run":"other"}}}`
	if err := c.SubResource("resize").Patch(t.Context(), s.pod.DeepCopy(), strategicPatch(patch)); err != nil {
		t.Errorf("a resize: %v", err)
	}
	if err := c.SubResource("ephemeralcontainers").Patch(t.Context(), s.pod.DeepCopy(), strategicPatch(patch)); !apitest.IsPolicy(err) {
		t.Errorf("ephemeral containers: %v", err)
	}
	if err := c.Status().Patch(t.Context(), s.pod.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
		t.Errorf("owners in the status: %v", err)
	}
	s.checkMetadata(t)
	if pod := s.readPod(t); !metav1.IsControlledBy(pod, s.run) {
		t.Errorf("the owners are %v", pod.OwnerReferences)
	}
}

// Kubelets, schedulers and controllers write conditions and bind pods.
func TestTheStatusOfARunnerPodIsWritten(t *testing.T) {
	s := newFixture(t)
	s.annotate(t)
	c := scheduler(t, s)
	condition := `{"metadata":{"annotations":{"example.com/a":"b"}},"status":{"conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable"}],"nominatedNodeName":"node-1"}}`
	if err := c.Status().Patch(t.Context(), s.pod.DeepCopy(), strategicPatch(condition)); err != nil {
		t.Errorf("a condition: %v", err)
	}
	if err := c.SubResource("binding").Create(t.Context(), s.pod.DeepCopy(), bindingOf(s, map[string]string{"example.com/zone": "a"}, map[string]string{"topology.kubernetes.io/zone": "a"})); err != nil {
		t.Errorf("a binding: %v", err)
	}
	running := s.readPod(t)
	running.Status.Phase = corev1.PodRunning
	if err := c.Status().Update(t.Context(), running); err != nil {
		t.Errorf("its phase: %v", err)
	}
	s.checkMetadata(t)
	if pod := s.readPod(t); pod.Spec.NodeName != "node-1" || pod.Status.Phase != corev1.PodRunning || pod.Annotations["example.com/a"] != "b" {
		t.Errorf("pod %s is %s on node %q with %v", pod.Name, pod.Status.Phase, pod.Spec.NodeName, pod.Annotations)
	}
}

func (s *fixture) readPod(t *testing.T) *corev1.Pod {
	t.Helper()
	var pod corev1.Pod
	if err := s.Admin.Get(t.Context(), client.ObjectKeyFromObject(s.pod), &pod); err != nil {
		t.Fatal(err)
	}
	return &pod
}

// checkMetadata fails the test if the stage's pod has not what annotate gave it.
func (s *fixture) checkMetadata(t *testing.T) {
	t.Helper()
	pod := s.readPod(t)
	ours := func(all map[string]string) map[string]string {
		all = maps.Clone(all)
		maps.DeleteFunc(all, func(k, _ string) bool { return !strings.HasPrefix(k, "deckhand.dev/") })
		return all
	}
	if got := ours(pod.Annotations); !maps.Equal(got, map[string]string{"deckhand.dev/task": `{"version":1}`}) {
		t.Errorf("the annotations are %v", got)
	}
	if got := ours(pod.Labels); !maps.Equal(got, map[string]string{"deckhand.dev/run": "mine"}) {
		t.Errorf("the labels are %v", got)
	}
}
