package run

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/labelindex"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What is kept bounds how many finished Runs and their pods fit the operator's memory.
func TestHeapOfWhatHasEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	const many, mostOfPod, mostOfEndedPod, mostOfRun = 5_000, 4_000, 1_200, 2_500
	pod, run := endedPod(t), finishedRun()
	pods := heapOf(t, many, objectcache.Pod, func(n int) client.Object {
		nameOf(pod, n)
		data, err := pod.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var out corev1.Pod
		if err := out.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		return &out
	})
	ended := heapOf(t, many, objectcache.EndedPod, func(n int) client.Object {
		m := metav1.PartialObjectMetadata{ObjectMeta: pod.ObjectMeta}
		nameOf(&m, n)
		data, err := m.Marshal()
		if err != nil {
			t.Fatal(err)
		}
		var out metav1.PartialObjectMetadata
		if err := out.Unmarshal(data); err != nil {
			t.Fatal(err)
		}
		return &out
	})
	runs := heapOf(t, many, objectcache.Run, func(n int) client.Object {
		run.Name, run.UID = fmt.Sprintf("load-%05d", n), types.UID(fmt.Sprintf("1b7c1bb2-7d3e-4c55-9c1f-%012d", n))
		data, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		var out v1alpha1.Run
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		return &out
	})
	t.Logf("a pod: %d bytes, metadata of an ended pod: %d bytes, a finished Run: %d bytes", pods, ended, runs)
	if pods > mostOfPod {
		t.Errorf("a pod takes %d bytes of the heap, want at most %d", pods, mostOfPod)
	}
	if ended > mostOfEndedPod {
		t.Errorf("the metadata of an ended pod takes %d bytes of the heap, want at most %d", ended, mostOfEndedPod)
	}
	if runs > mostOfRun {
		t.Errorf("a finished Run takes %d bytes of the heap, want at most %d", runs, mostOfRun)
	}
}

// nameOf gives a pod the name and the UID of the pod of the n-th Run.
func nameOf(pod client.Object, n int) {
	run := task.Run{Namespace: pod.GetNamespace(), Name: fmt.Sprintf("load-%05d", n), UID: fmt.Sprintf("1b7c1bb2-7d3e-4c55-9c1f-%012d", n)}
	pod.SetName(run.Name + "-1")
	pod.SetUID(types.UID(fmt.Sprintf("0a7c1bb2-7d3e-4c55-9c1f-%012d", n)))
	pod.GetLabels()[v1alpha1.LabelRun] = run.Name
	pod.GetOwnerReferences()[0].UID = types.UID(run.UID)
	pod.GetAnnotations()[v1alpha1.AnnotationTask] = string(runnerpod.ToJSON(task.Task{Version: 1, Run: run, Attempt: 1, Prompt: strings.Repeat("Fix it. ", 50)}))
}

// An operator may stop between making a pod and recording it, and the pod end
// meanwhile. Whether another webhook changed it shows only in what the cache drops.
func TestAnEndedPodIsComparedWithWhatWasAskedForAsItIs(t *testing.T) {
	s := newRefuser(t, gen.Run(), gen.Agent(commands))
	s.reconciler.connect(interceptor.NewClient(s, interceptor.Funcs{Get: getCached}), s, nil)
	s.begin()
	var pod corev1.Pod
	if err := s.Get(t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "x-1"}, &pod); err != nil {
		t.Fatal(err)
	}
	pod.Status.Phase = corev1.PodFailed
	if err := s.Status().Update(t.Context(), &pod); err != nil {
		t.Fatal(err)
	}
	run := s.get()
	run.Status.Attempt.PodUID = ""
	if err := s.Status().Update(t.Context(), run); err != nil {
		t.Fatal(err)
	}
	s.reconcileAll(1)
	if got := s.get(); got.Status.Attempt.PodUID != string(pod.UID) || runstatus.IsFinished(got) {
		t.Errorf("the Run is %s: %s", reasonOf(got), messageOf(got))
	}
}

// The operator sees pods as its cache keeps them, also when it restores their labels.
func TestLabelsAreRestoredFromWhatIsCached(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) { r.UID = "run" })
	of := string(runnerpod.ToJSON(task.Task{Run: task.Run{Namespace: run.Namespace, Name: run.Name, UID: string(run.UID)}, Attempt: 2}))
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "pod", Annotations: map[string]string{v1alpha1.AnnotationTask: of, v1alpha1.AnnotationEgress: "ba27498c021bf347"}},
		Spec:       corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	cached, err := objectcache.Pod(pod)
	if err != nil {
		t.Fatal(err)
	}
	got := restorations(state{run: run, pods: []corev1.Pod{*cached.(*corev1.Pod)}})
	want := map[string]string{v1alpha1.LabelRun: run.Name, v1alpha1.LabelAttempt: "2", v1alpha1.LabelEgress: "ba27498c021bf347"}
	if len(got) != 1 || !maps.Equal(got[0].labels, want) {
		t.Errorf("restored is %+v, want labels %v", got, want)
	}
}

// commands is an Agent that runs commands in a sandbox.
func commands(a *v1alpha1.Agent) {
	a.Spec.Tools = []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinShell}}
	a.Spec.Sandbox = &v1alpha1.Sandbox{Image: "golang:1.26"}
}

// getCached reads a Pod as the cache keeps it.
func getCached(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := c.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	if pod, is := o.(*corev1.Pod); is {
		kept, _ := objectcache.Pod(pod.DeepCopy())
		*pod = *kept.(*corev1.Pod)
	}
	return nil
}

// heapOf is what an object takes in the indexes of a cache.
func heapOf(t *testing.T, many int, keep toolscache.TransformFunc, object func(n int) client.Object) uint64 {
	t.Helper()
	indexers := toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc}
	_ = labelindex.Each(func(of client.Object, field string, values client.IndexerFunc) error {
		if reflect.TypeOf(of) != reflect.TypeOf(object(0)) {
			return nil
		}
		indexers[field] = func(o any) ([]string, error) { return values(o.(client.Object)), nil }
		return nil
	})
	store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
	before := heap()
	for n := range many {
		kept, err := keep(object(n))
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Add(kept); err != nil {
			t.Fatal(err)
		}
	}
	after := heap()
	runtime.KeepAlive(store)
	return (after - before) / uint64(many)
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC() // what the first one found to be unreachable
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// endedPod is a pod as the API server shows it once it has ended.
func endedPod(t *testing.T) *corev1.Pod {
	t.Helper()
	pod := firstPod(t, gen.Run(), gen.Agent())
	pod.ResourceVersion, pod.CreationTimestamp = "123456", metav1.NewTime(gen.Noon)
	nameOf(pod, 0)
	for _, manager := range []string{"manager", "kubelet"} {
		pod.ManagedFields = append(pod.ManagedFields, metav1.ManagedFieldsEntry{Manager: manager, Operation: "Update", FieldsV1: metav1.NewFieldsV1(strings.Repeat("x", 1500))})
	}
	pod.Status = corev1.PodStatus{
		Phase: corev1.PodSucceeded, HostIP: "10.0.0.1", PodIP: "10.1.0.1", QOSClass: corev1.PodQOSBurstable,
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: runnerpod.RunnerContainer, Image: "registry.example/runner:1", ImageID: strings.Repeat("a", 100), ContainerID: strings.Repeat("b", 70),
			State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				Reason: "Completed", FinishedAt: metav1.NewTime(gen.Noon), ContainerID: strings.Repeat("b", 70),
				Message: string(task.Termination{Version: 1, Attempt: 1, Result: task.Result{Committed: true, Reason: task.ReasonFinished, Text: "The haiku is in /workspace/haiku.txt."}}.Encode()),
			}},
		}},
	}
	for _, c := range []corev1.PodConditionType{"PodReadyToStartContainers", corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady, corev1.PodScheduled} {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: c, Status: corev1.ConditionTrue, Reason: "PodCompleted", LastTransitionTime: metav1.NewTime(gen.Noon)})
	}
	return pod
}

// finishedRun is a Run as the API server shows it once it has finished.
func finishedRun() *v1alpha1.Run {
	return gen.Run(func(r *v1alpha1.Run) {
		now := metav1.NewTime(gen.Noon)
		r.Spec.Prompt = strings.Repeat("Fix it. ", 50)
		r.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "manager", FieldsV1: metav1.NewFieldsV1(`{"a":"` + strings.Repeat("x", 1500) + `"}`)}}
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: "load-00000-1", PodUID: "0a7c1bb2-7d3e-4c55-9c1f-000000000000", AgentRevision: strings.Repeat("a", 64), StartedAt: now}
		r.Status.Internal.PendingSince = &now
		r.Status.StartTime, r.Status.CompletionTime, r.Status.Target = &now, &now, &v1alpha1.RunTarget{Kind: v1alpha1.TargetAgent, Name: "fixer"}
		r.Status.Progress = &v1alpha1.RunProgress{Version: 1, Attempt: 1, Result: &v1alpha1.Result{Committed: true, Reason: v1alpha1.ReasonFinished, Text: strings.Repeat("It is fixed. ", 50)}}
		for n := range 20 {
			r.Status.Progress.Recent = append(r.Status.Progress.Recent, v1alpha1.RecentStep{Kind: fmt.Sprint("Step", n)})
		}
		r.Status.Conditions = nil
		for _, c := range []string{v1alpha1.ConditionFinished, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled, v1alpha1.ConditionSucceeded} {
			r.Status.Conditions = append(r.Status.Conditions, metav1.Condition{Type: c, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished, LastTransitionTime: now})
		}
	})
}
