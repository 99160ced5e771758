// Package controller_test calls the controllers one reconcile at a time against a real API
// server, with the operator's own rights and a clock that the test sets.
package controller_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/run"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/serviceaccount"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestMain(m *testing.M) {
	if config := os.Getenv(processEnv); config != "" {
		fmt.Fprintln(os.Stderr, runOperatorProcess(config))
		os.Exit(1)
	}
	apitest.Main(m)
}

// A fixture is one Run with its operator, on a real API server, without a
// setPodStatus: the test is the kubelet.
type fixture struct {
	*apitest.Server
	t               *testing.T
	namespace       string
	operator        client.WithWatch // with the operator's own rights
	faults          interceptor.Funcs
	events          *events.FakeRecorder
	missingPolicies string
	unchecked       bool // the operator has not checked the policies yet
	supply          runnerpod.Defaults
	egress          *egress.Policies
	now             time.Time
	run             *v1alpha1.Run // as it was created
}

func newFixture(t *testing.T, mods ...func(*v1alpha1.Run)) *fixture {
	t.Helper()
	b := &fixture{Server: apitest.Get(t), t: t, events: events.NewFakeRecorder(100), now: time.Now().Truncate(time.Second)}
	b.namespace = b.Namespace(t)
	b.CheckInvariants(t, b.namespace)
	b.operator = interceptor.NewClient(operatorClient(t, b.Server), interceptor.Funcs{List: listBySource})
	model, agent := gen.Model(), gen.Agent()
	for _, o := range []client.Object{model, agent} {
		o.SetNamespace(b.namespace)
		o.SetUID("")
	}
	b.Create(t, model, agent)
	b.run = b.newRun(mods...)
	return b
}

func (b *fixture) newRun(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	b.t.Helper()
	r := &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "x"},
		Spec:       v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it."},
	}
	for _, mod := range mods {
		mod(r)
	}
	b.Create(b.t, r)
	return r
}

// operatorClient acts as the operator's ServiceAccount, with the rights of
// the chart and no others.
func operatorClient(t *testing.T, s *apitest.Server) client.WithWatch {
	t.Helper()
	user := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: "deckhand-system", Name: "deckhand"}
	for _, file := range []string{"role.yaml", "runner.yaml"} {
		objects, err := apitest.ReadObjects(apitest.Manifest("rbac", file))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range objects {
			createOnce(t, s, o)
			s.Bind(t, "", o.GetName(), user)
		}
	}
	return s.AsServiceAccount(t, user.Namespace, user.Name)
}

func createOnce(t *testing.T, s *apitest.Server, o client.Object) {
	t.Helper()
	if err := s.Admin.Create(t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

func (b *fixture) Missing(string) (string, bool) { return b.missingPolicies, !b.unchecked }

// reconcile calls the controller once, with the Run as the API server has it now.
func (b *fixture) reconcile() error {
	b.t.Helper()
	return b.reconcileCopy(b.get())
}

// reconcileCopy calls the controller once with a copy of the Run, which may be old.
func (b *fixture) reconcileCopy(r *v1alpha1.Run) error {
	b.t.Helper()
	_, err := b.reconciler().Reconcile(b.t.Context(), r)
	return err
}

func (b *fixture) reconciler() *run.Reconciler {
	c := interceptor.NewClient(b.operator, b.faults)
	o := run.Options{
		RunnerImage:      "deckhand.test/runner:dev",
		RunnerPullPolicy: "IfNotPresent",
		PodDefaults:      b.supply,
		Guard:            b,
		Identity:         serviceaccount.New(c, "deckhand-runner"),
		Now:              func() time.Time { return b.now },
	}
	if b.egress != nil {
		o.NetworkPolicies = b.egress
	}
	return run.New(c, c, b.events, o)
}

// reconcileUntilStable reconciles until neither the Run nor the number of pods changes. Each time
// it is another Reconciler, which finds the pod of a first attempt and records it.
func (b *fixture) reconcileUntilStable() *v1alpha1.Run {
	b.t.Helper()
	for range 20 {
		before, pods := b.get(), len(b.pods())
		if err := b.reconcile(); err != nil {
			b.t.Fatalf("reconciling: %v", err)
		}
		if b.get().ResourceVersion == before.ResourceVersion && len(b.pods()) == pods {
			return before
		}
	}
	b.t.Fatal("the Run does not stop changing")
	return nil
}

func (b *fixture) get() *v1alpha1.Run {
	b.t.Helper()
	var out v1alpha1.Run
	if err := b.Admin.Get(b.t.Context(), client.ObjectKeyFromObject(b.run), &out); err != nil {
		b.t.Fatalf("getting the Run: %v", err)
	}
	return &out
}

func (b *fixture) pods() []corev1.Pod {
	b.t.Helper()
	var list corev1.PodList
	if err := b.Admin.List(b.t.Context(), &list, client.InNamespace(b.namespace)); err != nil {
		b.t.Fatal(err)
	}
	return list.Items
}

func (b *fixture) onlyPod() *corev1.Pod {
	b.t.Helper()
	pods := b.pods()
	if len(pods) != 1 {
		b.t.Fatalf("there are %d pods, want 1", len(pods))
	}
	return &pods[0]
}

// setPodStatus sets the state of a pod's runner.
func (b *fixture) setPodStatus(pod *corev1.Pod, phase corev1.PodPhase, state corev1.ContainerState) {
	b.t.Helper()
	pod = pod.DeepCopy()
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "runner", Image: pod.Spec.Containers[0].Image, State: state}}
	if err := b.Admin.Status().Update(b.t.Context(), pod); err != nil {
		b.t.Fatalf("updating a pod's status: %v", err)
	}
}

func (b *fixture) startRunner(pod *corev1.Pod) {
	b.t.Helper()
	b.setPodStatus(pod, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(b.now)}})
}

func (b *fixture) endRunner(pod *corev1.Pod, code int32, message string) {
	b.t.Helper()
	b.setPodStatus(pod, corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(b.now), Message: message}})
}

// report is the runner's write, with the runner's own token.
func (b *fixture) report(pod *corev1.Pod, p task.Progress) error {
	b.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1alpha1.RunnerServiceAccount}}
	c := b.WithToken(b.t, b.Token(b.t, account, pod))
	p.Version, p.PodUID, p.Sequence = task.Version, string(pod.UID), max(sequence(b.get())+1, b.now.UnixMilli())
	test := fmt.Sprintf(`{"op":"test","path":"/status/attempt/podUID","value":%q}`, pod.UID)
	if b.get().Status.Attempt == nil {
		test = `{"op":"test","path":"/status/attempt","value":null}`
	}
	return c.Status().Patch(b.t.Context(), b.get(), client.RawPatch(types.JSONPatchType, []byte(fmt.Sprintf(
		`[%s,{"op":"add","path":"/status/progress","value":%s}]`, test, jsonOf(b.t, p)))))
}

func sequence(r *v1alpha1.Run) int64 {
	if r.Status.Progress == nil {
		return 0
	}
	return r.Status.Progress.Sequence
}

// succeeded is the reason and status of the Run's condition Succeeded.
func succeeded(r *v1alpha1.Run) string {
	for _, c := range r.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded {
			return string(c.Status) + " " + c.Reason
		}
	}
	return ""
}

func message(r *v1alpha1.Run) string {
	for _, c := range r.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded {
			return c.Message
		}
	}
	return ""
}

func (b *fixture) expect(want string) {
	b.t.Helper()
	if seen := b.get(); succeeded(seen) != want {
		b.t.Fatalf("the Run is %s: %s, want %s", succeeded(seen), message(seen), want)
	}
}

// failOnce makes the next call of one kind fail.
func failOnce(b *fixture, err error) {
	failed := false
	b.faults.SubResourcePatch = func(ctx context.Context, c client.Client, sub string, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
		if !failed {
			failed = true
			return err
		}
		return c.SubResource(sub).Patch(ctx, o, p, opts...)
	}
}
