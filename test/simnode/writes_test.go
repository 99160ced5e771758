//go:build bench

package simnode_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/test/simnode"
)

// TestWrites prints how many bytes the API server allocates for each kind of write that a Run
// needs, and for writes to compare them with: a mean of many. Unlike CPU time this does not
// depend on what else the machine does.
func TestWrites(t *testing.T) {
	f := newFixture(t, simnode.Options{}, nil)
	api, err := kubernetes.NewForConfig(f.config)
	if err != nil {
		t.Fatal(err)
	}
	stopOperator := f.operate()
	f.create(&v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1alpha1.ModelSpec{Provider: v1alpha1.ProviderOpenAICompatible, ModelID: "m", Endpoint: "http://model.invalid/v1"}})
	f.create(&v1alpha1.Agent{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.AgentSpec{
		Instructions: "Answer.", Model: "m", PodTemplate: &v1alpha1.PodTemplate{NodeSelector: simnode.Selector(f.node), Tolerations: simnode.Tolerations()},
	}})
	pods := f.watch(&corev1.PodList{})
	f.create(newRun("x"))
	pods("created", func(e watch.Event) bool { f.bind(e); return true })
	var runner *corev1.Pod
	pods("ended", func(e watch.Event) bool {
		runner, _ = e.Object.(*corev1.Pod)
		return phase(e) == corev1.PodSucceeded
	})
	written, err := json.Marshal(runner)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("BenchmarkPodSize 1 %d B\n", len(written))
	f.create(bare(f.node))
	pods("ended", func(e watch.Event) bool {
		pod, is := e.Object.(*corev1.Pod)
		return is && pod.Name == "bare" && phase(e) == corev1.PodSucceeded
	})
	stopOperator() // so that all requests are those of the test
	f.create(newRun("started"))
	attempt := fmt.Sprintf(`{"status":{"attempt":{"number":1,"pod":"started-1","podUID":%q,"agentRevision":"h","startedAt":"2030-01-01T00:00:00Z"}}}`, runner.UID)
	if err := f.api.Status().Patch(t.Context(), &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "started"}}, client.RawPatch(types.MergePatchType, []byte(attempt))); err != nil {
		t.Fatal(err)
	}

	core, runs := "/api/v1/namespaces/"+f.namespace, "/apis/deckhand.dev/v1alpha1/namespaces/"+f.namespace+"/runs/"
	patch := func(path string, kind types.PatchType, body string) func(int) error {
		return func(i int) error {
			return api.CoreV1().RESTClient().Patch(kind).AbsPath(path).Body(fmt.Appendf(nil, body, i%60)).Do(t.Context()).Error()
		}
	}
	const (
		resumed = `[{"op":"add","path":"/status/internal","value":{"resumedAt":"2030-01-01T00:00:%02dZ"}}]`
		ready   = `{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2030-01-01T00:00:%02dZ"}]}}`
		data    = `{"data":{"n":"%d"}}`
	)
	f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "map"}})
	create := func(o client.Object) error { return f.api.Create(t.Context(), o, client.DryRunAll) }
	again := func(pod *corev1.Pod) func(int) error { // the same pod under another name
		return func(int) error {
			o := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "again", Labels: pod.Labels, Annotations: pod.Annotations, OwnerReferences: pod.OwnerReferences}, Spec: *pod.Spec.DeepCopy()}
			return create(o)
		}
	}
	for _, w := range []struct {
		what string
		do   func(int) error
	}{
		{"RunCreate", func(i int) error {
			run := newRun(fmt.Sprintf("run-%d", i))
			run.Namespace = f.namespace
			return create(run)
		}},
		{"RunStatusPatch/started", patch(runs+"started/status", types.JSONPatchType, resumed)},
		{"RunStatusPatch/finished", patch(runs+"x/status", types.JSONPatchType, resumed)},
		{"PodCreate/bare", again(bare(f.node))},
		{"PodCreate/runner", again(runner)},
		{"PodStatusPatch/bare", patch(core+"/pods/bare/status", types.StrategicMergePatchType, ready)},
		{"PodStatusPatch/runner", patch(core+"/pods/"+runner.Name+"/status", types.StrategicMergePatchType, ready)},
		{"ConfigMapPatch", patch(core+"/configmaps/map", types.MergePatchType, data)},
	} {
		fmt.Printf("BenchmarkWrite%s %d %.0f server-B/write\n", w.what, writesOfEach, f.allocated(api, w.do))
	}
}

const writesOfEach = 200

func newRun(name string) *v1alpha1.Run {
	return &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.RunSpec{Agent: "a", Prompt: "Read it."}}
}

// allocated returns how many bytes the API server allocates for one write, the mean of many.
func (f *fixture) allocated(api kubernetes.Interface, write func(int) error) float64 {
	f.t.Helper()
	var before float64
	for i := range 2 * writesOfEach { // the first half warms caches
		if i == writesOfEach {
			before = f.allocatedInAll(api)
		}
		if err := write(i); err != nil {
			f.t.Fatal(err)
		}
	}
	return (f.allocatedInAll(api) - before) / writesOfEach
}

var allocatedLine = regexp.MustCompile(`(?m)^go_memstats_alloc_bytes_total (\S+)$`)

func (f *fixture) allocatedInAll(api kubernetes.Interface) float64 {
	f.t.Helper()
	text, err := api.CoreV1().RESTClient().Get().AbsPath("/metrics").DoRaw(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	line := allocatedLine.FindSubmatch(text)
	if line == nil {
		f.t.Fatal("the API server does not say what it has allocated")
	}
	n, err := strconv.ParseFloat(string(line[1]), 64)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}
