package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/labelindex"
	"github.com/deckhand-dev/deckhand/internal/operator"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
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
		if _, is := o.(*metav1.PartialObjectMetadata); is {
			m := &metav1.PartialObjectMetadataList{}
			m.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
			list = m
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

func (l *errorLog) lines() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.errors)
}

// createRuns makes Runs that an operator is to start.
func createRuns(t *testing.T, namespace string, many int) {
	t.Helper()
	model, agent := gen.Model(), gen.Agent()
	for _, o := range []client.Object{model, agent} {
		o.SetNamespace(namespace)
		o.SetUID("")
	}
	apitest.Get(t).Create(t, model, agent)
	addRuns(t, namespace, 0, many)
}

// addRuns creates the Runs from a number up to, and without, another.
func addRuns(t *testing.T, namespace string, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		apitest.Get(t).Create(t, &v1alpha1.Run{
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
// round. It returns how many Runs have one. Until it is recorded, the first pod has the name of
// its Run and -1.
func checkOnePodPerRun(t *testing.T, namespace string) int {
	t.Helper()
	made, says := pods(t, namespace), podsOfRuns(t, namespace)
	for _, p := range made {
		run := p.Labels[v1alpha1.LabelRun]
		if _, recorded := says[run]; !recorded && p.Name == run+"-1" {
			says[run] = string(p.UID)
		}
		if is := says[run]; is != string(p.UID) {
			t.Errorf("pod %s has the UID %s, its Run says %q", p.Name, p.UID, is)
		}
	}
	if len(made) != len(says) {
		t.Errorf("there are %d pods, and %d Runs have one", len(made), len(says))
	}
	return len(says)
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
	if made, recorded := len(pods(t, namespace)), len(podsOfRuns(t, namespace)); made != recorded {
		t.Errorf("%d pods exist, and %d are recorded", made, recorded)
	}
	for _, line := range book.lines() {
		// client-go logs this if it is stopped while it renews the lease.
		if !strings.Contains(line, `"leaderelection"`) || !strings.Contains(line, `"context canceled"`) {
			t.Errorf("it logged %s", line)
		}
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
