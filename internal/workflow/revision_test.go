package workflow_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const outer = `
nodes:
- {name: one, workflow: inner, input: {subject: a}}
- {name: two, workflow: inner, input: {subject: {cel: nodes.one.output.by}}}
- {name: three, agent: writer, input: {topics: [b], words: 20}}
`

func revision(t *testing.T, main string) *workflow.Revision {
	t.Helper()
	v, err := of(t, main, map[string]string{"inner": inner})
	if err != nil {
		t.Fatalf("Of: %s", problem(err))
	}
	return v
}

// store returns the ConfigMaps of a revision by name.
func store(v *workflow.Revision) map[string]*corev1.ConfigMap {
	out := map[string]*corev1.ConfigMap{}
	for _, cm := range v.ConfigMaps("team-a") {
		out[cm.Name] = cm
	}
	return out
}

func fromConfigMaps(from map[string]*corev1.ConfigMap) func(string) (*corev1.ConfigMap, bool, error) {
	return func(name string) (*corev1.ConfigMap, bool, error) { return from[name], from[name] != nil, nil }
}

func TestWhatIsStoredIsReadBack(t *testing.T) {
	v := revision(t, outer)
	maps := v.ConfigMaps("team-a")
	var order []string
	for _, cm := range maps {
		order = append(order, cm.Labels[v1alpha1.LabelAgent]+cm.Labels[v1alpha1.LabelWorkflow])
		if cm.Immutable == nil || !*cm.Immutable || cm.Labels[v1alpha1.LabelRevision] != "true" || cm.Namespace != "team-a" {
			t.Errorf("ConfigMap %s is %+v", cm.Name, cm.ObjectMeta)
		}
	}
	if diff := cmp.Diff([]string{"reviewer", "inner", "writer", "main"}, order); diff != "" {
		t.Errorf("what a revision needs comes first, each once: -want +got:\n%s", diff)
	}
	last := maps[len(maps)-1]
	if last.Name != workflow.Name(v.Hash) || snapshot.HashOf(last) != v.Hash || workflow.NameOf(last) != "main" {
		t.Errorf("the last is %s of %q", last.Name, workflow.NameOf(last))
	}
	if diff := cmp.Diff([]string{v.Agents["writer"].Hash, v.Workflows["inner"].Hash}, workflow.Needs(last), cmp.Transformer("sort", func(s []string) []string { return slices.Sorted(slices.Values(s)) })); diff != "" {
		t.Errorf("it needs -want +got:\n%s", diff)
	}
	back, err := workflow.Read(t.Context(), fromConfigMaps(store(v)), v.Hash)
	if err != nil || back == nil {
		t.Fatalf("Read: %v", err)
	}
	if back.Hash != v.Hash || back.Name != "main" || back.Workflows["inner"].Hash != v.Workflows["inner"].Hash || back.Workflows["inner"].Name != "inner" {
		t.Errorf("read back: %+v", back)
	}
	was, is := v.Agents["writer"], back.Agents["writer"]
	if was.Snapshot == nil || is.Snapshot != nil || is.Hash != was.Hash || len(is.Input) != len(was.Input) {
		t.Errorf("read back: %+v, was %+v", is, was)
	}
	p, err := workflow.Compile(back)
	if err != nil {
		t.Fatalf("Compile: %s", problem(err))
	}
	given, err := p.NodeInput("two", workflow.Iteration{}, values(map[string]workflow.NodeValue{"one": {State: "Succeeded", Output: json.RawMessage(`{"by":"judge"}`)}}, ""))
	if string(given) != `{"subject":"judge"}` || err != nil {
		t.Errorf("what is read back gives %s, error %v", given, err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	v := revision(t, outer)
	for _, lost := range []string{v.Hash, v.Workflows["inner"].Hash} {
		maps := store(v)
		delete(maps, workflow.Name(lost))
		if back, err := workflow.Read(t.Context(), fromConfigMaps(maps), v.Hash); back != nil || err != nil {
			t.Errorf("Read() = %v, %v; want that it is not there", back, err)
		}
	}
	down := errors.New("down") //nolint:err113 // a fault
	if _, err := workflow.Read(t.Context(), func(string) (*corev1.ConfigMap, bool, error) { return nil, false, down }, v.Hash); !errors.Is(err, down) {
		t.Errorf("Read() = %v", err)
	}
}

func TestAlteredContentIsRefused(t *testing.T) {
	v := revision(t, outer)
	for _, hash := range []string{v.Hash, v.Workflows["inner"].Hash} {
		maps := store(v)
		cm := maps[workflow.Name(hash)]
		cm.Data["workflow.json"] = strings.Replace(cm.Data["workflow.json"], `"agent":`, `"agent" :`, 1)
		if _, err := workflow.Read(t.Context(), fromConfigMaps(maps), v.Hash); err == nil || !strings.Contains(err.Error(), "is not the Workflow's revision "+hash) {
			t.Errorf("Read() = %v", err)
		}
	}
}

// A revision that this operator cannot read whole is refused: the Run could do something else.
func TestARevisionOfAnotherOperatorIsRefused(t *testing.T) {
	v := revision(t, outer)
	maps := store(v)
	data := strings.Replace(maps[workflow.Name(v.Hash)].Data["workflow.json"], `"version":1`, `"version":3`, 1)
	hash := task.Hash([]byte(data))
	maps[workflow.Name(hash)] = &corev1.ConfigMap{Data: map[string]string{"workflow.json": data}}
	back, err := workflow.Read(t.Context(), fromConfigMaps(maps), hash)
	if unsupported, is := errors.AsType[*stored.UnsupportedError](err); !is || back != nil || !unsupported.IsNewer() {
		t.Errorf("Read() = %v, %v", back, err)
	}
}

// A revision is safe for concurrent use.
func TestConcurrentUse(t *testing.T) {
	v := revision(t, outer)
	back, err := workflow.Read(t.Context(), fromConfigMaps(store(v)), v.Hash)
	if err != nil {
		t.Fatal(err)
	}
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			p, err := workflow.Compile(back)
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := p.NodeInput("one", workflow.Iteration{}, values(nil, "")); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
}

// The hash covers what a Run depends on, independent of its order.
func TestHash(t *testing.T) {
	base := revision(t, outer).Hash
	if again := revision(t, outer).Hash; again != base {
		t.Error("the same Workflow has another hash")
	}
	turned := objects(t, map[string]string{"main": outer, "inner": inner})
	turned.Workflows["main"].Spec.Nodes[2].Input = &runtime.RawExtension{Raw: []byte(`{"words":20, "topics":["b"]}`)}
	if v, err := workflow.Of(turned.Workflows["main"], turned); err != nil || v.Hash != base {
		t.Errorf("with in another order has another hash, error %v", err)
	}
	changes := map[string]func(o workflow.Objects){
		"a prompt":       func(o workflow.Objects) { o.Workflows["main"].Spec.Nodes[2].Prompt = "Otherwise." },
		"an Agent":       func(o workflow.Objects) { o.Agents["writer"].Spec.Instructions = "Otherwise." },
		"a nested Agent": func(o workflow.Objects) { o.Agents["reviewer"].Spec.Instructions = "Otherwise." },
		"a Model":        func(o workflow.Objects) { o.AgentObjects["writer"].Models["sonnet"].Spec.ModelID = "otherwise" },
		"a nested node":  func(o workflow.Objects) { o.Workflows["inner"].Spec.Nodes[0].Prompt = "Otherwise." },
	}
	for what, change := range changes {
		o := objects(t, map[string]string{"main": outer, "inner": inner})
		change(o)
		if v, err := workflow.Of(o.Workflows["main"], o); err != nil || v.Hash == base {
			t.Errorf("%s changes and the hash does not, error %v", what, err)
		}
	}
	o := objects(t, map[string]string{"main": outer, "inner": inner})
	o.Agents["talker"].Spec.Instructions = "Otherwise."
	if v, err := workflow.Of(o.Workflows["main"], o); err != nil || v.Hash != base {
		t.Errorf("an Agent that it does not name changes, and the hash too; error %v", err)
	}
}

// A namespace is a client with objects that counts reads.
type namespace struct {
	client.Reader
	objects workflow.Objects
	reads   int
	broken  error
}

func (n *namespace) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	n.reads++
	if n.broken != nil {
		return n.broken
	}
	switch o := o.(type) {
	case *v1alpha1.Workflow:
		if found := n.objects.Workflows[key.Name]; found != nil {
			found.DeepCopyInto(o)
			return nil
		}
	case *v1alpha1.Agent:
		if found := n.objects.Agents[key.Name]; found != nil {
			found.DeepCopyInto(o)
			return nil
		}
	case *v1alpha1.Model:
		if found := n.objects.AgentObjects["talker"].Models[key.Name]; found != nil {
			found.DeepCopyInto(o)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
}

func TestFrom(t *testing.T) {
	o := objects(t, map[string]string{"main": outer, "inner": inner})
	n := &namespace{objects: o}
	got, err := workflow.From(t.Context(), cached.Reader(n), o.Workflows["main"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"inner", "main"}, sorted(got.Workflows)); diff != "" {
		t.Errorf("Workflows -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"reviewer", "writer"}, sorted(got.Agents)); diff != "" {
		t.Errorf("Agents -want +got:\n%s", diff)
	}
	v, err := workflow.Of(o.Workflows["main"], got)
	if err != nil || v.Hash != revision(t, outer).Hash {
		t.Errorf("what was read makes another revision, error %v", err)
	}
	delete(o.Agents, "writer")
	if got, err = workflow.From(t.Context(), cached.Reader(n), o.Workflows["main"]); err != nil || got.Agents["writer"] != nil {
		t.Errorf("From() = %v, %v", got.Agents["writer"], err)
	}
	n.broken = errors.New("down") //nolint:err113 // a fault
	if _, err := workflow.From(t.Context(), cached.Reader(n), o.Workflows["main"]); !errors.Is(err, n.broken) {
		t.Errorf("From() = %v", err)
	}
}

// From stops reading at one Workflow more than the maximum.
func TestFromStopsInTime(t *testing.T) {
	all := map[string]string{"main": "nodes: [{name: a, workflow: w0}, {name: b, workflow: w1}]"}
	for i := range 1000 {
		all["w"+string(raw(t, i))] = "nodes: [{name: a, workflow: w" + string(raw(t, i+1)) + "}, {name: b, agent: talker, prompt: x}]"
	}
	o := objects(t, all)
	n := &namespace{objects: o}
	got, err := workflow.From(t.Context(), cached.Reader(n), o.Workflows["main"])
	if err != nil || n.reads > workflow.MaxWorkflows+1 {
		t.Errorf("%d reads, error %v", n.reads, err)
	}
	if _, err := workflow.Of(o.Workflows["main"], got); !strings.HasPrefix(problem(err), "TooLarge: It refers to more than 64 Workflows") {
		t.Errorf("Of: %s", problem(err))
	}
}
