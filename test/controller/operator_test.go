package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apitest"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/labelindex"
	"github.com/deckhand-dev/deckhand/internal/operator"
)

func operatorOptions(namespace string) operator.Options {
	return operator.Options{
		RunnerImage: "runner:1", RunnerPullPolicy: "IfNotPresent", PolicyPrefix: "deckhand", Namespaces: []string{namespace},
		MetricsAddress: "0", ProbeAddress: "0", Log: logr.Discard(),
	}
}

// newOperator is an operator of one namespace that serves nothing.
func newOperator(t *testing.T, namespace string, mods ...func(*operator.Options)) ctrl.Manager {
	t.Helper()
	o := operatorOptions(namespace)
	for _, mod := range mods {
		mod(&o)
	}
	mgr, err := operator.New(t.Context(), apitest.Get(t).Config, o)
	if err != nil {
		t.Fatal(err)
	}
	return mgr
}

// start runs an operator; stop stops it and waits for its end.
func start(t *testing.T, mgr ctrl.Manager) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	stop = func() error {
		cancel()
		return <-done
	}
	if !mgr.GetCache().WaitForCacheSync(ctx) {
		t.Fatalf("the cache does not sync: %v", stop())
	}
	return stop
}

func TestTheOperatorLooksUpLabelsInIndexes(t *testing.T) {
	mgr := newOperator(t, apitest.Get(t).Namespace(t))
	stop := start(t, mgr)
	if _, is := mgr.GetClient().(labelindex.Client); !is {
		t.Errorf("its client is a %T", mgr.GetClient())
	}
	err := labelindex.Each(func(o client.Object, field string, _ client.IndexerFunc) error {
		gvk, err := apiutil.GVKForObject(o, mgr.GetScheme())
		if err != nil {
			return err
		}
		list, err := mgr.GetScheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return err
		}
		return mgr.GetCache().List(t.Context(), list.(client.ObjectList), client.MatchingFields{field: "x"})
	})
	if err != nil {
		t.Error(err)
	}
	if err := stop(); err != nil {
		t.Errorf("stopping it: %v", err)
	}
}

// An errorLog keeps what an operator logs as errors.
type errorLog struct {
	mu     sync.Mutex
	errors []string
}

func (l *errorLog) logger() logr.Logger {
	return funcr.NewJSON(func(line string) {
		var entry struct{ Error any }
		if json.Unmarshal([]byte(line), &entry) == nil && entry.Error != nil {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.errors = append(l.errors, line)
		}
	}, funcr.Options{})
}

// createRuns makes Runs that an operator is to start.
func createRuns(t *testing.T, namespace string, many int) {
	t.Helper()
	model, agent := gen.Model(), gen.Agent()
	for _, o := range []client.Object{model, agent} {
		o.SetNamespace(namespace)
		o.SetUID("")
	}
	s := apitest.Get(t)
	s.Create(t, model, agent)
	for n := range many {
		s.Create(t, &v1alpha1.Run{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("x%d", n)},
			Spec:       v1alpha1.RunSpec{Agent: "fixer", Prompt: "Fix it."},
		})
	}
}

// started waits until so many pods are made.
func started(t *testing.T, namespace string, many int) {
	t.Helper()
	eventually(t, many, "pods are made", func() int { return len(pods(t, namespace)) })
}

// recorded waits until so many Runs have a pod.
func recorded(t *testing.T, namespace string, many int) {
	t.Helper()
	eventually(t, many, "Runs have a pod", func() int { return len(podsOfRuns(t, namespace)) })
}

// eventually waits, within bounds, until there are so many.
func eventually(t *testing.T, many int, what string, count func() int) {
	t.Helper()
	last := 0
	err := wait.PollUntilContextTimeout(t.Context(), 20*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = count()
		return last >= many, nil
	})
	if err != nil {
		t.Fatalf("%d %s, want %d: %v", last, what, many, err)
	}
}

func pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	var list corev1.PodList
	if err := apitest.Get(t).Admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// podsOfRuns are the UIDs of the pods that Runs say they have.
func podsOfRuns(t *testing.T, namespace string) map[string]string {
	t.Helper()
	var list v1alpha1.RunList
	if err := apitest.Get(t).Admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, r := range list.Items {
		if a := r.Status.Attempt; a != nil && a.PodUID != "" {
			out[r.Name] = a.PodUID
		}
	}
	return out
}

// checkOnePodPerRun finds pods that their Runs do not say they have, and the other way
// round. It returns how many Runs have one.
func checkOnePodPerRun(t *testing.T, namespace string) int {
	t.Helper()
	made, says := pods(t, namespace), podsOfRuns(t, namespace)
	for _, p := range made {
		if is := says[p.Labels[v1alpha1.LabelRun]]; is != string(p.UID) {
			t.Errorf("pod %s has the UID %s, its Run says %q", p.Name, p.UID, is)
		}
	}
	if len(made) != len(says) {
		t.Errorf("there are %d pods, and %d Runs have one", len(made), len(says))
	}
	return len(says)
}

func withLeaderElection(namespace string, lease operator.Lease) func(*operator.Options) {
	return func(o *operator.Options) { o.LeaderElection, o.Namespace, o.Lease = true, namespace, lease }
}

func TestAnOperatorThatIsStoppedLeavesNothingHalfDoneAndLogsNoErrors(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	createRuns(t, namespace, 100)
	book := &errorLog{}
	stop := start(t, newOperator(t, namespace, withLeaderElection(namespace, operator.Lease{}), func(o *operator.Options) { o.Log = book.logger() }))
	started(t, namespace, 20)
	if err := stop(); err != nil {
		t.Errorf("stopping it: %v", err)
	}
	if checkOnePodPerRun(t, namespace) == 100 {
		t.Error("it was done before it was stopped")
	}
	for _, line := range book.errors {
		t.Errorf("it logged %s", line)
	}
}

func TestAnotherOperatorTakesOverFromOneThatIsStopped(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	// It takes over because the lease is given up: it would not expire for an hour.
	lease := operator.Lease{Duration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: 200 * time.Millisecond}
	first, second := newOperator(t, namespace, withLeaderElection(namespace, lease)), newOperator(t, namespace, withLeaderElection(namespace, lease))
	stopFirst := start(t, first)
	<-first.Elected()
	stopSecond := start(t, second)
	createRuns(t, namespace, 60)
	started(t, namespace, 10)
	if err := stopFirst(); err != nil {
		t.Errorf("stopping the first: %v", err)
	}
	started(t, namespace, 60)
	if err := stopSecond(); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
	if many := checkOnePodPerRun(t, namespace); many != 60 {
		t.Errorf("%d Runs have a pod", many)
	}
}

// Pods stay after they have ended. An operator that starts later deletes them in time,
// and goes on with Runs whose pods ended meanwhile.
func TestOperatorFindsPodsThatEndedBeforeItStarted(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	createRuns(t, namespace, 3)
	stop := start(t, newOperator(t, namespace))
	recorded(t, namespace, 3)
	if err := stop(); err != nil {
		t.Fatalf("stopping the first: %v", err)
	}
	patchStatus(t, &corev1.Pod{}, namespace, "x0-1", `{"phase":"Succeeded"}`) // retention is 1h
	patchStatus(t, &v1alpha1.Run{}, namespace, "x0", `{"completionTime":"`+time.Now().Add(-2*time.Hour).Format(time.RFC3339)+`"}`)
	patchStatus(t, &corev1.Pod{}, namespace, "x1-1", `{"phase":"Succeeded"}`)
	patchStatus(t, &v1alpha1.Run{}, namespace, "x1", `{"completionTime":"`+time.Now().Add(-30*time.Minute).Format(time.RFC3339)+`"}`)
	patchStatus(t, &corev1.Pod{}, namespace, "x2-1", `{"phase":"Failed","containerStatuses":[{"name":"runner","image":"runner:1","imageID":"","ready":false,"restartCount":0,"state":{"terminated":{"exitCode":1}}}]}`)
	stop = start(t, newOperator(t, namespace))
	eventually(t, 1, "second attempts are made", func() int { return countPods(t, namespace, "x2-2") })
	eventually(t, 1, "pods are deleted after their retention", func() int { return 1 - countPods(t, namespace, "x0-1") })
	if countPods(t, namespace, "x1-1") == 0 {
		t.Error("a pod was deleted before its retention passed")
	}
	if err := stop(); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
}

// countPods is 1 if a pod of that name exists and is not being deleted, otherwise 0.
func countPods(t *testing.T, namespace, name string) int {
	t.Helper()
	for _, pod := range pods(t, namespace) {
		if pod.Name == name && pod.DeletionTimestamp == nil {
			return 1
		}
	}
	return 0
}

func patchStatus(t *testing.T, o client.Object, namespace, name, status string) {
	t.Helper()
	o.SetNamespace(namespace)
	o.SetName(name)
	if err := apitest.Get(t).Admin.Status().Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))); err != nil {
		t.Fatal(err)
	}
}

// processEnv is set for the process that is killed: this test once more, as an operator.
const processEnv = "DECKHAND_TEST_VICTIM"

// A processConfig is how it reaches the API server.
type processConfig struct {
	Host, Namespace, Pod string
	Lease                operator.Lease
	TLS                  rest.TLSClientConfig
}

// crashLease is the shortest that client-go takes.
var crashLease = operator.Lease{Duration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 200 * time.Millisecond}

func TestAnotherOperatorTakesOverFromOneThatIsKilled(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	first := startOperatorProcess(t, processConfig{Namespace: namespace, Lease: crashLease})
	createRuns(t, namespace, 60)
	started(t, namespace, 10) // it leads
	second := newOperator(t, namespace, withLeaderElection(namespace, crashLease))
	stop := start(t, second)
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	if n := len(pods(t, namespace)); n == 60 {
		t.Error("it was done before it was killed")
	}
	<-second.Elected()
	started(t, namespace, 60)
	recorded(t, namespace, 60)
	if err := stop(); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
	checkOnePodPerRun(t, namespace)
}

// startOperatorProcess starts an operator as a process of its own.
func startOperatorProcess(t *testing.T, c processConfig) *exec.Cmd {
	t.Helper()
	s := apitest.Get(t)
	c.Host, c.TLS = s.Config.Host, s.Config.TLSClientConfig
	config, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	process := exec.CommandContext(t.Context(), os.Args[0])
	process.Env = append(os.Environ(), processEnv+"="+string(config))
	process.Stderr = os.Stderr
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	return process
}

// A container that is restarted in its pod leads at once: the lease would not expire for
// an hour.
func TestAnOperatorThatStartsAgainInItsPodTakesItsLeaseBack(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	lease := operator.Lease{Duration: time.Hour, RenewDeadline: time.Minute, RetryPeriod: 200 * time.Millisecond}
	first := startOperatorProcess(t, processConfig{Namespace: namespace, Lease: lease, Pod: "deckhand-0"})
	createRuns(t, namespace, 20)
	started(t, namespace, 5) // it leads
	if err := first.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = first.Wait() // it was killed
	second := newOperator(t, namespace, withLeaderElection(namespace, lease), func(o *operator.Options) { o.Pod = "deckhand-0" })
	stop := start(t, second)
	<-second.Elected()
	recorded(t, namespace, 20)
	if err := stop(); err != nil {
		t.Errorf("stopping it: %v", err)
	}
	checkOnePodPerRun(t, namespace)
}

// Without a lease both operators work all the time. Neither makes a second pod, nor takes
// back what the other wrote, and neither logs a conflict as an error.
func TestTwoOperatorsThatBothLeadMakeOnePodEach(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	s.CheckInvariants(t, namespace)
	book := &errorLog{}
	logs := func(o *operator.Options) { o.Log = book.logger() }
	stopFirst := start(t, newOperator(t, namespace, logs))
	stopSecond := start(t, newOperator(t, namespace, logs))
	createRuns(t, namespace, 60)
	recorded(t, namespace, 60)
	for n := range 60 {
		patchStatus(t, &v1alpha1.Run{}, namespace, fmt.Sprintf("x%d", n), `{"progress":{"version":1,"attempt":1,"sequence":1,"counts":{"steps":1,"modelCalls":1,"toolCalls":0,"errors":0},"usage":{"inputTokens":1,"outputTokens":1,"totalTokens":2,"durationSeconds":1},"result":{"committed":true,"reason":"Finished"}}}`)
	}
	eventually(t, 60, "Runs have finished", func() int { return finishedRuns(t, namespace) })
	for _, stop := range []func() error{stopFirst, stopSecond} {
		if err := stop(); err != nil {
			t.Errorf("stopping it: %v", err)
		}
	}
	checkOnePodPerRun(t, namespace)
	for _, line := range book.errors {
		t.Errorf("one of them logged %s", line)
	}
}

// finishedRuns counts the Runs that succeeded in their first attempt.
func finishedRuns(t *testing.T, namespace string) int {
	t.Helper()
	var list v1alpha1.RunList
	if err := apitest.Get(t).Admin.List(t.Context(), &list, client.InNamespace(namespace)); err != nil {
		t.Fatal(err)
	}
	finished := 0
	for i := range list.Items {
		if r := &list.Items[i]; succeeded(r) == "True Finished" && r.Status.Attempt.Number == 1 && r.Status.Failures+r.Status.Disruptions == 0 {
			finished++
		}
	}
	return finished
}

// A leader that is stopped by the kernel for longer than its lease, for example because
// its cluster node is out of memory, works on when it is woken, beside the next leader.
func TestAnOperatorThatIsFrozenLongerThanItsLeaseMakesNoSecondPod(t *testing.T) {
	namespace := apitest.Get(t).Namespace(t)
	first := startOperatorProcess(t, processConfig{Namespace: namespace, Lease: crashLease})
	createRuns(t, namespace, 60)
	started(t, namespace, 10) // it leads
	if err := first.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if n := len(pods(t, namespace)); n == 60 {
		t.Error("it was done before it was frozen")
	}
	second := newOperator(t, namespace, withLeaderElection(namespace, crashLease))
	stop := start(t, second)
	<-second.Elected()
	if err := first.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := first.Wait(); err == nil {
		t.Error("the frozen operator ended without an error, want that it lost its lease")
	}
	recorded(t, namespace, 60)
	if err := stop(); err != nil {
		t.Errorf("stopping the second: %v", err)
	}
	if many := checkOnePodPerRun(t, namespace); many != 60 {
		t.Errorf("%d Runs have a pod", many)
	}
}

// runOperatorProcess runs an operator until it is killed.
func runOperatorProcess(text string) error {
	var c processConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	o := operatorOptions(c.Namespace)
	withLeaderElection(c.Namespace, c.Lease)(&o)
	o.Pod = c.Pod
	ctx := context.Background()
	mgr, err := operator.New(ctx, &rest.Config{Host: c.Host, TLSClientConfig: c.TLS, QPS: -1}, o)
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}
