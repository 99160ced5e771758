package controller_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A faultyTransport carries an operator's or a runner's requests to the API server. A test
// counts what fails on it, and tampers with its watches.
type faultyTransport struct {
	http.RoundTripper
	mu      sync.Mutex
	errors  int
	lists   int
	expired bool // resource versions are too old to watch from
	open    []io.Closer
}

func (w *faultyTransport) wrap(cfg *rest.Config) *rest.Config {
	out := rest.CopyConfig(cfg)
	out.Wrap(func(next http.RoundTripper) http.RoundTripper {
		w.RoundTripper = next
		return w
	})
	return out
}

func (w *faultyTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	query := r.URL.Query()
	watches, whole := query.Has("watch"), query.Get("sendInitialEvents") == "true"
	w.mu.Lock()
	expired := w.expired && watches && !whole
	if r.Method == http.MethodGet && (whole || !watches) {
		w.lists++
	}
	w.mu.Unlock()
	if expired {
		return resourceExpired(r)
	}
	response, err := w.RoundTripper.RoundTrip(r)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.errors++
	} else if watches {
		w.open = append(w.open, response.Body)
	}
	return response, err
}

// resourceExpired is how the API server ends a watch from a resource version that it has
// no history of any more.
func resourceExpired(r *http.Request) (*http.Response, error) {
	event, err := json.Marshal(map[string]any{"type": "ERROR", "object": apierrors.NewResourceExpired("too old resource version: 1 (2)").Status()})
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(event)),
	}, err
}

// expire ends every watch; none goes on from where it was.
func (w *faultyTransport) expire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = true
	for _, body := range w.open {
		_ = body.Close()
	}
	w.open = nil
}

func (w *faultyTransport) recover() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.expired = false
}

func (w *faultyTransport) count() (errors, lists int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.errors, w.lists
}

// An operatorFixture is a namespace with an Agent and a running operator.
type operatorFixture struct {
	*apitest.Server
	t               *testing.T
	namespace       string
	faultyTransport *faultyTransport // the operator's
	mods            []func(*operator.Options)
	stop            func() error // stops the operator
}

func newOperatorFixture(t *testing.T, s *apitest.Server, mods ...func(*operator.Options)) *operatorFixture {
	t.Helper()
	w := &operatorFixture{Server: s, t: t, namespace: s.Namespace(t), faultyTransport: &faultyTransport{}}
	model, agent := gen.Model(), gen.Agent()
	for _, o := range []client.Object{model, agent} {
		o.SetNamespace(w.namespace)
		o.SetUID("")
	}
	s.Create(t, model, agent)
	w.mods = mods
	w.operate()
	return w
}

// operate starts an operator, which ends with the test or when it is stopped.
func (s *operatorFixture) operate() {
	s.t.Helper()
	o := operator.Options{
		RunnerImage: "runner:1", RunnerPullPolicy: "IfNotPresent", PolicyPrefix: "deckhand", Namespaces: []string{s.namespace},
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	}
	for _, mod := range s.mods {
		mod(&o)
	}
	mgr, err := operator.New(s.t.Context(), s.faultyTransport.wrap(s.Config), o)
	if err != nil {
		s.t.Fatal(err)
	}
	stop := sync.OnceValue(start(s.t, mgr))
	s.stop = stop
	s.t.Cleanup(func() {
		if err := stop(); err != nil {
			s.t.Errorf("stopping the operator: %v", err)
		}
	})
}

func (s *operatorFixture) newRun(name string) *v1alpha1.Run {
	s.t.Helper()
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: name}, Spec: v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it."}}
	s.until("Run "+name+" is created", func(ctx context.Context) bool {
		err := s.Admin.Create(ctx, run)
		// An API server that just started may not serve the kind, or not know it for admission yet.
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsServiceUnavailable(err) {
			s.t.Fatalf("creating Run %s: %v", name, err)
		}
		return err == nil
	})
	return run
}

// await waits until a Run is as it should be.
func (s *operatorFixture) await(run *v1alpha1.Run, what string, holds func(*v1alpha1.Run) bool) *v1alpha1.Run {
	s.t.Helper()
	var seen v1alpha1.Run
	s.until("Run "+run.Name+" "+what, func(ctx context.Context) bool {
		return s.Admin.Get(ctx, client.ObjectKeyFromObject(run), &seen) == nil && holds(&seen)
	})
	return &seen
}

func (s *operatorFixture) until(what string, holds func(context.Context) bool) {
	s.t.Helper()
	err := wait.PollUntilContextTimeout(s.t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) { return holds(ctx), nil })
	if err != nil {
		s.t.Fatalf("%s: %v", what, err)
	}
}

// pod is that of a Run's attempt, once it is recorded.
func (s *operatorFixture) pod(run *v1alpha1.Run, attempt int32) *corev1.Pod {
	s.t.Helper()
	seen := s.await(run, "has a pod", func(r *v1alpha1.Run) bool {
		return r.Status.Attempt != nil && r.Status.Attempt.Number == attempt && r.Status.Attempt.PodUID != ""
	})
	var pod corev1.Pod
	if err := s.Admin.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: seen.Status.Attempt.Pod}, &pod); err != nil {
		s.t.Fatal(err)
	}
	return &pod
}

// What happened while no watch went on is seen once the API server lists again:
// what is new, what changed and what is gone.
func TestWatchesThatAreTooOldAreBegunAnew(t *testing.T) {
	s := newOperatorFixture(t, apitest.Get(t))
	early := s.newRun("early")
	first := s.pod(early, 1)
	_, before := s.faultyTransport.count()
	s.faultyTransport.expire()
	now := int64(0)
	if err := s.Admin.Delete(t.Context(), first, &client.DeleteOptions{GracePeriodSeconds: &now}); err != nil {
		t.Fatal(err)
	}
	late := s.newRun("late")
	s.until("the operator lists again", func(context.Context) bool { _, lists := s.faultyTransport.count(); return lists > before })
	s.faultyTransport.recover()
	s.pod(late, 1)
	s.pod(early, 2)
	if seen := s.await(early, "is charged", func(*v1alpha1.Run) bool { return true }); seen.Status.Disruptions != 1 || seen.Status.Failures != 0 {
		t.Errorf("%d disruptions and %d failures, want 1 and 0", seen.Status.Disruptions, seen.Status.Failures)
	}
}

// Two operators that watch namespaces of their own leave each other's Runs alone,
// also while one of them is away.
func TestTwoOperatorsSideBySideKeepToTheirNamespaces(t *testing.T) {
	server := apitest.Get(t)
	image := func(name string) func(*operator.Options) {
		return func(o *operator.Options) { o.RunnerImage = name }
	}
	one, other := newOperatorFixture(t, server, image("runner:1")), newOperatorFixture(t, server, image("runner:2"))
	for s, want := range map[*operatorFixture]string{one: "runner:1", other: "runner:2"} {
		if is := s.pod(s.newRun("x"), 1).Spec.Containers[0].Image; is != want {
			t.Errorf("the pod runs %s, want %s", is, want)
		}
	}
	if err := one.stop(); err != nil {
		t.Fatal(err)
	}
	left := one.newRun("left")
	other.pod(other.newRun("next"), 1)
	if err := server.Admin.Get(t.Context(), client.ObjectKeyFromObject(left), left); err != nil {
		t.Fatal(err)
	}
	if left.Status.Attempt != nil {
		t.Errorf("the other operator began a Run that is not its own: %+v", left.Status.Attempt)
	}
}

// While the API server is down the runner goes on, and reports what it is at by
// then; the operator goes on where it was. Neither takes the outage for a failure.
func TestAnOutageOfTheAPIServerCostsNothing(t *testing.T) {
	server := apitest.NewKillable(t)
	role, err := apitest.ReadObjects(apitest.Manifest("rbac", "runner.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	server.Create(t, role...)
	s := newOperatorFixture(t, server.Server, func(o *operator.Options) { o.Namespaces = nil }) // it makes the runner's identity
	run := s.newRun("x")
	pod := s.pod(run, 1)
	w, faultyTransport := s.writer(server, run, pod)
	if err := w.Commit(t.Context(), func() task.Progress { return task.Progress{Version: task.Version, Attempt: 1} }); err != nil {
		t.Fatalf("the first report: %v", err)
	}
	s.await(run, "is at work", func(r *v1alpha1.Run) bool { return succeeded(r) == "Unknown Running" })

	server.Kill(t)
	for steps := range int64(51) {
		w.Report(func() task.Progress { return at(steps) })
	}
	s.until("both try", func(context.Context) bool {
		operators, _ := s.faultyTransport.count()
		runners, _ := faultyTransport.count()
		return operators >= 5 && runners >= 3
	})
	server.Start(t)

	seen := s.await(run, "hears the latest", func(r *v1alpha1.Run) bool { return r.Status.Progress.Counts.Steps == 50 })
	if seen.Status.Attempt.Number != 1 || seen.Status.Disruptions != 0 || seen.Status.Failures != 0 || succeeded(seen) != "Unknown Running" {
		t.Errorf("after the outage it is %s with attempt %d, %d disruptions and %d failures", succeeded(seen), seen.Status.Attempt.Number, seen.Status.Disruptions, seen.Status.Failures)
	}
	done := at(51)
	done.Result = &task.Result{Committed: true, Reason: task.ReasonFinished, Text: "done"}
	if err := w.Commit(t.Context(), func() task.Progress { return done }); err != nil {
		t.Fatalf("the result: %v", err)
	}
	s.await(run, "finishes", func(r *v1alpha1.Run) bool { return succeeded(r) == "True Finished" })
	s.pod(s.newRun("next"), 1)
}

func at(steps int64) task.Progress {
	return task.Progress{Version: task.Version, Attempt: 1, Sequence: steps, Counts: task.Counts{Steps: steps}}
}

// writer is the runner's own, with the token of a pod.
func (s *operatorFixture) writer(server *apitest.Killable, run *v1alpha1.Run, pod *corev1.Pod) (*report.Writer, *faultyTransport) {
	s.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: v1alpha1.RunnerServiceAccount}}
	token := s.Token(s.t, account, pod)
	w := &faultyTransport{}
	transport, err := rest.HTTPClientFor(w.wrap(rest.AnonymousClientConfig(s.Config)))
	if err != nil {
		s.t.Fatal(err)
	}
	out := report.New(report.Options{
		Target: report.Target{
			URL: server.URL(), Run: task.Run{Namespace: s.namespace, Name: run.Name, UID: string(run.UID)}, PodUID: string(pod.UID),
			Token: func() (string, error) { return token, nil }, Client: transport,
		},
		Now:    time.Now,
		Jitter: func(d time.Duration) time.Duration { return d },
		Ended:  func(err error) { s.t.Errorf("the runner takes itself for replaced: %v", err) },
		Log:    slog.New(slog.DiscardHandler),
	})
	s.t.Cleanup(out.Close)
	return out, w
}
