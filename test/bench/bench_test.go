//go:build bench

package bench

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
)

// pairs are how often a Run and a bare pod take turns.
const pairs = 10

// A fixture is a namespace with a model that answers with one word, and an Agent
// that uses it.
type fixture struct {
	t         *testing.T
	config    *rest.Config
	client    client.WithWatch
	operator  client.Client // as the operator's ServiceAccount, which alone may create runner pods
	api       kubernetes.Interface
	namespace string
	endpoint  string // of the model
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	r := connect(t)
	r.createModelAndAgent()
	return r
}

// connect reaches the cluster, and has a namespace there until the test ends.
func connect(t *testing.T) *fixture {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	cfg, err := ctrl.GetConfig()
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS, cfg.Burst = -1, 0
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	r := &fixture{t: t, config: cfg}
	if r.client, err = client.NewWithWatch(cfg, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	asOperator := rest.CopyConfig(cfg)
	asOperator.Impersonate = rest.ImpersonationConfig{
		UserName: "system:serviceaccount:" + operatorNamespace + ":deckhand",
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:" + operatorNamespace, "system:authenticated"},
	}
	if r.operator, err = client.New(asOperator, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	if r.api, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "deckhand-bench-"}}
	r.create(ns)
	r.namespace = ns.Name
	t.Cleanup(func() { r.deleteNamespace(ns) })
	return r
}

// deleteNamespace returns when the namespace is gone: what the operator writes about its Runs until then
// would count as writes of the next test.
func (r *fixture) deleteNamespace(ns *corev1.Namespace) {
	ctx := context.WithoutCancel(r.t.Context())
	_ = r.client.Delete(ctx, ns) // it is seen below
	err := wait.PollUntilContextTimeout(ctx, time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		err := r.client.Get(ctx, client.ObjectKeyFromObject(ns), ns)
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		r.t.Errorf("deleting namespace %s: %v", ns.Name, err)
	}
}

func (r *fixture) createModelAndAgent() {
	r.t.Helper()
	server := r.pod("model", modelImage(), "--listen", ":8080")
	server.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODELSERVER_SCRIPT", Value: `{"models":{"*":{"turns":[{"text":"Done."}]}}}`}}
	r.create(server)
	var running corev1.Pod
	for running.Status.PodIP == "" {
		r.get(server, &running)
	}
	r.endpoint = "http://" + running.Status.PodIP + ":8080/v1"
	r.create(&v1alpha1.Model{ObjectMeta: r.meta("trivial"), Spec: v1alpha1.ModelSpec{
		Provider: v1alpha1.ProviderOpenAICompatible, ModelID: "trivial", Endpoint: r.endpoint,
	}})
	r.create(&v1alpha1.Agent{ObjectMeta: r.meta("trivial"), Spec: v1alpha1.AgentSpec{Instructions: "Say one word.", Model: "trivial", Retention: v1alpha1.Retention{Pod: "0s"}}})
}

func modelImage() string { return fallback("BENCH_MODELSERVER_IMAGE", "deckhand.test/modelserver:dev") }

func fallback(env, otherwise string) string {
	if v := os.Getenv(env); v != "" {
		return v
	}
	return otherwise
}

func (r *fixture) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: r.namespace, Name: name}
}

func (r *fixture) create(o client.Object) {
	r.t.Helper()
	if err := r.client.Create(r.t.Context(), o); err != nil {
		r.t.Fatalf("creating %T %s: %v", o, o.GetName(), err)
	}
}

func (r *fixture) get(o, into client.Object) {
	r.t.Helper()
	if err := r.client.Get(r.t.Context(), client.ObjectKeyFromObject(o), into); err != nil {
		r.t.Fatal(err)
	}
}

func (r *fixture) pod(name, image string, args ...string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: r.meta(name), Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "c", Image: image, Args: args, ImagePullPolicy: corev1.PullIfNotPresent}},
	}}
}

// runBarePod is the time from the creation of a pod that does nothing to its end, as
// one watcher sees it.
func (r *fixture) runBarePod(n int) time.Duration {
	pod := r.pod(fmt.Sprintf("bare-%d", n), modelImage(), "--help")
	return r.until(pod, &corev1.PodList{}, func(o client.Object) bool {
		p, is := o.(*corev1.Pod)
		return is && p.Name == pod.Name && (p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed)
	})
}

// runAskingPod is the same of a pod that asks the model of the Runs once.
func (r *fixture) runAskingPod(n int) time.Duration {
	pod := r.pod(fmt.Sprintf("asking-%d", n), modelImage(), "--ask", r.endpoint)
	return r.until(pod, &corev1.PodList{}, func(o client.Object) bool {
		p, is := o.(*corev1.Pod)
		if is && p.Name == pod.Name && p.Status.Phase == corev1.PodFailed {
			r.t.Fatalf("pod %s failed", pod.Name)
		}
		return is && p.Name == pod.Name && p.Status.Phase == corev1.PodSucceeded
	})
}

// run is the same of a Run whose model says one word.
func (r *fixture) run(n int) time.Duration {
	run := &v1alpha1.Run{ObjectMeta: r.meta(fmt.Sprintf("run-%d", n)), Spec: v1alpha1.RunSpec{Agent: "trivial", Prompt: "Say it."}}
	d := r.until(run, &v1alpha1.RunList{}, func(o client.Object) bool {
		seen, is := o.(*v1alpha1.Run)
		return is && seen.Name == run.Name && seen.Status.CompletionTime != nil
	})
	var seen v1alpha1.Run
	r.get(run, &seen)
	for _, c := range seen.Status.Conditions {
		if c.Type == v1alpha1.ConditionSucceeded && c.Status != metav1.ConditionTrue {
			r.t.Fatalf("Run %s ended %s: %s", run.Name, c.Reason, c.Message)
		}
	}
	return d
}

func (r *fixture) until(o client.Object, list client.ObjectList, over func(client.Object) bool) time.Duration {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	w, err := r.client.Watch(ctx, list, client.InNamespace(r.namespace))
	if err != nil {
		r.t.Fatal(err)
	}
	defer w.Stop()
	begin := time.Now()
	r.create(o)
	for e := range w.ResultChan() {
		if seen, is := e.Object.(client.Object); is && e.Type != watch.Deleted && over(seen) {
			return time.Since(begin)
		}
	}
	r.t.Fatalf("%s never ended", o.GetName())
	return 0
}

func TestRunOverBarePod(t *testing.T) {
	r := newFixture(t)
	r.runBarePod(-1) // what is made once is made now
	r.run(-1)
	r.runAskingPod(-1)
	var runBarePod, runAskingPod, run []time.Duration
	for n := range pairs {
		runBarePod = append(runBarePod, r.runBarePod(n))
		runAskingPod = append(runAskingPod, r.runAskingPod(n))
		run = append(run, r.run(n))
	}
	slices.Sort(runBarePod)
	slices.Sort(runAskingPod)
	slices.Sort(run)
	b, a, u := runBarePod[pairs/2], runAskingPod[pairs/2], run[pairs/2]
	fmt.Printf("create → terminal, medians of %d interleaved: bare pod %s, bare pod that asks the model %s, trivial Run %s\n", pairs, b.Round(time.Millisecond), a.Round(time.Millisecond), u.Round(time.Millisecond))
	fmt.Printf("  bare pods      %v\n  that ask       %v\n  Runs           %v\n", rounded(runBarePod), rounded(runAskingPod), rounded(run))
	r.print("BenchmarkRunOverBarePod %d %.0f run-ms %.0f pod-ms %.0f asking-pod-ms", ms(u), ms(b), ms(a))
}

func rounded(all []time.Duration) []time.Duration {
	var out []time.Duration
	for _, d := range all {
		out = append(out, d.Round(time.Millisecond))
	}
	return out
}

// print prints figures of pairs as benchmarks do, below where they were taken.
func (r *fixture) print(format string, figures ...any) {
	r.t.Helper()
	r.printOf(pairs, format, figures...)
}

// printOf prints figures of n objects.
func (r *fixture) printOf(n int, format string, figures ...any) {
	r.t.Helper()
	version, err := r.api.Discovery().ServerVersion()
	if err != nil {
		r.t.Fatalf("asking for the version of Kubernetes: %v", err)
	}
	fmt.Printf("kubernetes: %s\npkg: github.com/deckhand-dev/deckhand/test/bench\n", version.GitVersion)
	fmt.Printf(format+"\n", append([]any{n}, figures...)...)
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// The operator's requests are counted by its own client, all writes to the
// status of Runs by the API server; what is left is the runners'.
func TestWritesPerRun(t *testing.T) {
	r := newFixture(t)
	r.run(-1)
	r.settle()
	manager, server := r.managerWrites(), r.statusPatches()
	before := 0.0
	for n := range pairs {
		pods, patches := r.served("pods", "", "POST", "201"), r.statusPatches()
		r.run(n)
		before += r.served("pods", "", "POST", "201") - pods + r.statusPatches() - patches - 1 // the one that ends it
	}
	r.settle()
	all := r.managerWrites().minus(manager)
	runners := r.statusPatches() - server - all["PATCH"]
	fmt.Printf("writes per trivial Run: operator %.1f (POST %.1f: the pod and an event; PATCH %.1f: the end; DELETE %.1f: the pod), runner %.1f (result), all %.1f\n",
		per(all.sum()), per(all["POST"]), per(all["PATCH"]), per(all["DELETE"]), per(runners), per(all.sum()+runners))
	fmt.Printf("  of them before it is terminal, as the API server counted when a watcher saw the end: %.1f\n", per(before))
	r.print("BenchmarkWrites %d %.1f writes %.1f writes-before-the-end", per(all.sum()+runners), per(before))
}

// settle lets what is written behind be written.
func (*fixture) settle() { <-time.After(5 * time.Second) }

func per(n float64) float64 { return n / pairs }

type writes map[string]float64

func (w writes) minus(o writes) writes {
	out := writes{}
	for k, v := range w {
		out[k] = v - o[k]
	}
	return out
}

func (w writes) sum() float64 {
	var s float64
	for _, v := range w {
		s += v
	}
	return s
}

// managerWrites are the operator's requests that write, but for those on its
// lease, which are PUTs; nothing else of it is.
func (r *fixture) managerWrites() writes {
	r.t.Helper()
	m, out := r.operatorMetrics(), writes{}
	for _, method := range []string{"POST", "PATCH", "DELETE"} {
		out[method] = m.sum("rest_client_requests_total", "method", method)
	}
	return out
}

// statusPatches is how many patches of the status of Runs were written.
func (r *fixture) statusPatches() float64 { return r.served("runs", "status", "PATCH", "200") }

// checks is how often a runner asked whether its pod is recorded, and it was: a patch that is
// not written.
func (r *fixture) checks() float64 { return r.served("runs", "status", "PATCH", "409") }

// served is how many requests of a kind the API server has answered with a status code.
func (r *fixture) served(resource, subresource, verb, code string) float64 {
	r.t.Helper()
	return r.serverMetrics().sum("apiserver_request_total", "resource", resource, "subresource", subresource, "verb", verb, "code", code)
}
