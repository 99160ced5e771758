package simnode_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/test/simnode"
)

func TestMain(m *testing.M) { apitest.Main(m) }

// A fixture is a namespace, and a simulated node of the test's own.
type fixture struct {
	t         *testing.T
	api       client.WithWatch
	config    *rest.Config
	namespace string
	node      string
}

func newFixture(t *testing.T, o simnode.Options, wrap func(http.RoundTripper) http.RoundTripper) *fixture {
	t.Helper()
	s := apitest.Get(t)
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{t: t, config: s.Config, namespace: s.Namespace(t)}
	f.node = "sim-" + f.namespace
	if f.api, err = client.NewWithWatch(s.Config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	s.AllowKubelets(t)
	o.Name, o.Failed = f.node, func(err error) { t.Errorf("the simulated node: %v", err) }
	cfg := rest.CopyConfig(s.Config)
	if wrap != nil {
		cfg.Wrap(wrap)
	}
	node, err := simnode.New(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	if err := node.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := node.Remove(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *fixture) create(o client.Object) {
	f.t.Helper()
	o.SetNamespace(f.namespace)
	if err := f.api.Create(f.t.Context(), o); err != nil {
		f.t.Fatalf("creating %T: %v", o, err)
	}
}

func (f *fixture) createOnce(o client.Object) {
	f.t.Helper()
	if err := f.api.Create(f.t.Context(), o); err != nil && !apierrors.IsAlreadyExists(err) {
		f.t.Fatalf("creating %T: %v", o, err)
	}
}

// watch begins a watch of the namespace; the function waits for what holds.
func (f *fixture) watch(list client.ObjectList) func(string, func(watch.Event) bool) {
	f.t.Helper()
	w, err := f.api.Watch(f.t.Context(), list, client.InNamespace(f.namespace))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(w.Stop)
	return func(what string, holds func(watch.Event) bool) {
		f.t.Helper()
		for e := range w.ResultChan() {
			if holds(e) {
				return
			}
		}
		f.t.Fatalf("the watch ended before: %s", what)
	}
}

func phase(e watch.Event) corev1.PodPhase {
	if p, is := e.Object.(*corev1.Pod); is {
		return p.Status.Phase
	}
	return ""
}

func bare(node string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "bare"}, Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "c"}}}}
}

func TestBarePodRunsAndSucceeds(t *testing.T) {
	f := newFixture(t, simnode.Options{}, nil)
	await := f.watch(&corev1.PodList{})
	f.create(bare(f.node))
	var phases []corev1.PodPhase
	await("Succeeded", func(e watch.Event) bool {
		phases = append(phases, phase(e))
		return phase(e) == corev1.PodSucceeded
	})
	if diff := cmp.Diff([]corev1.PodPhase{corev1.PodPending, corev1.PodRunning, corev1.PodSucceeded}, phases); diff != "" {
		t.Errorf("phases -want +got:\n%s", diff)
	}
}

func TestDeletedPodStopsAndGoes(t *testing.T) {
	f := newFixture(t, simnode.Options{Work: func(*corev1.Pod) time.Duration { return time.Hour }}, nil)
	await := f.watch(&corev1.PodList{})
	pod := bare(f.node)
	f.create(pod)
	await("Running", func(e watch.Event) bool { return phase(e) == corev1.PodRunning })
	if err := f.api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	var last *corev1.Pod
	await("deleted", func(e watch.Event) bool {
		last, _ = e.Object.(*corev1.Pod)
		return e.Type == watch.Deleted
	})
	if last.Status.Phase != corev1.PodFailed || last.Status.ContainerStatuses[0].State.Terminated.ExitCode != 143 {
		t.Errorf("its last status is %+v", last.Status)
	}
}

// The operator, the policies and the runner's own writer take a Run to its end.
func TestRunEndsOnASimulatedNode(t *testing.T) {
	f := newFixture(t, simnode.Options{}, nil)
	f.operate()
	f.create(&v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, ModelID: "m", Endpoint: "http://model.invalid/v1"}})
	f.create(&v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.AgentSpec{
		Instructions: "Answer.", Model: "m", PodTemplate: &v1alpha1.PodTemplate{NodeSelector: simnode.Selector(f.node), Tolerations: simnode.Tolerations()},
	}})
	runs, pods := f.watch(&v1alpha1.RunList{}), f.watch(&corev1.PodList{})
	f.create(&v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Read it."}})
	pods("created", func(e watch.Event) bool { f.bind(e); return true })
	var run *v1alpha1.Run
	runs("finished", func(e watch.Event) bool {
		run, _ = e.Object.(*v1alpha1.Run)
		return run.Status.CompletionTime != nil
	})
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded && (c.Status != metav1.ConditionTrue || c.Reason != v1alpha1.ReasonFinished) {
			t.Errorf("the Run is %s %s: %s", c.Status, c.Reason, c.Message)
		}
	}
	if p := run.Status.Progress; p.Counts.Steps != 2 || len(p.Recent) != 3 || p.Result.Text == "" {
		t.Errorf("progress is %+v", p)
	}
	pods("Succeeded", func(e watch.Event) bool { return phase(e) == corev1.PodSucceeded })
}

// operate runs the operator until the test ends; once in a process, since it names
// its controllers once.
func (f *fixture) operate() (stop func()) {
	f.t.Helper()
	runner, err := apitest.ReadObjects(apitest.Manifest("rbac", "runner.yaml"))
	if err != nil {
		f.t.Fatal(err)
	}
	for _, o := range runner {
		f.createOnce(o)
	}
	ctx, cancel := context.WithCancel(f.t.Context())
	mgr, err := operator.New(ctx, f.config, operator.Options{
		RunnerImage: "runner:1", RunnerPullPolicy: "IfNotPresent", PolicyPrefix: "deckhand", MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("the operator: %v", err)
		}
	})
	f.t.Cleanup(stop)
	return stop
}

// bind is the scheduler.
func (f *fixture) bind(e watch.Event) {
	f.t.Helper()
	pod, _ := e.Object.(*corev1.Pod)
	binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: f.node}}
	if err := f.api.SubResource("binding").Create(f.t.Context(), pod, binding); err != nil {
		f.t.Fatalf("binding: %v", err)
	}
}

// A runner of which the operator knows another pod is refused by the policy: its
// requests say which pod they come from.
func TestPolicyJudgesARunnerByItsPod(t *testing.T) {
	refusals := make(chan string, 1000)
	f := newFixture(t, simnode.Options{}, func(rt http.RoundTripper) http.RoundTripper { return listener{rt, refusals} })
	const account = "system:serviceaccount:"
	apitest.Get(t).Bind(t, f.namespace, "cluster-admin", rbacv1.Subject{
		APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: account + f.namespace + ":" + v1alpha1.RunnerServiceAccount,
	})
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "x"}, Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Read it."}}
	f.create(run)
	pod := bare("")
	pod.Spec.ServiceAccountName = v1alpha1.RunnerServiceAccount
	pod.Annotations = map[string]string{v1alpha1.AnnotationTask: `{"version":1,"attempt":1,"run":{"namespace":"` + f.namespace + `","name":"x"}}`}
	pods := f.watch(&corev1.PodList{})
	f.create(pod)
	attempt := `[{"op":"add","path":"/status/attempt","value":{"number":1,"pod":"another","podUID":"` + string(pod.UID) + `","agentRevision":"h","startedAt":"2030-01-01T00:00:00Z"}}]`
	if err := f.api.Status().Patch(t.Context(), run, client.RawPatch(types.JSONPatchType, []byte(attempt))); err != nil {
		t.Fatal(err)
	}
	pods("created", func(e watch.Event) bool { f.bind(e); return true })
	select {
	case why := <-refusals:
		if !strings.Contains(why, "fenced: this pod is not the current attempt of this Run") {
			t.Errorf("it was refused: %s", why)
		}
	case <-t.Context().Done():
	}
	if err := f.api.Delete(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	pods("deleted", func(e watch.Event) bool { return e.Type == watch.Deleted })
	if err := f.api.Get(t.Context(), client.ObjectKeyFromObject(run), run); err != nil || run.Status.Progress != nil {
		t.Errorf("progress is %+v (%v)", run.Status.Progress, err)
	}
}

// A listener tells why requests are forbidden.
type listener struct {
	http.RoundTripper
	refusals chan string
}

func (l listener) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := l.RoundTripper.RoundTrip(r)
	if err != nil || response.StatusCode != http.StatusForbidden {
		return response, err
	}
	defer response.Body.Close()
	why, err := io.ReadAll(response.Body)
	response.Body = io.NopCloser(bytes.NewReader(why))
	select {
	case l.refusals <- string(why):
	default:
	}
	return response, err
}
