package workflow_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// agents has the Agents of these tests.
func agents() map[string]*v1alpha1.Agent {
	schema := func(s string) runtime.RawExtension { return runtime.RawExtension{Raw: []byte(s)} }
	out := map[string]*v1alpha1.Agent{}
	for _, a := range []*v1alpha1.Agent{
		gen.Agent(func(a *v1alpha1.Agent) { a.Name = "talker" }),
		gen.Agent(func(a *v1alpha1.Agent) {
			a.Name = "reviewer"
			a.Spec.Output = &v1alpha1.Output{Schema: schema(`{"type":"object","required":["score","files"],"properties":{"score":{"type":"integer"},"note":{"type":"string"},"files":{"type":"array","items":{"type":"string"}}}}`)}
		}),
		gen.Agent(func(a *v1alpha1.Agent) {
			a.Name = "writer"
			a.Spec.Input = &v1alpha1.Input{Schema: new(schema(`{"type":"object","required":["topics"],"properties":{"topics":{"type":"array","items":{"type":"string"}},"words":{"type":"integer","minimum":10},"style":{"type":"string"}}}`))}
		}),
		gen.Agent(func(a *v1alpha1.Agent) {
			a.Name = "shipwright"
			a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume
		}),
		gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Model = "stranger", "nobody" }),
		gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Model = "freeman", "free" }),
	} {
		out[a.Name] = a
	}
	return out
}

// objects parses Workflows by name, with all agents.
func objects(t testing.TB, workflows map[string]string) workflow.Objects {
	t.Helper()
	o := workflow.Objects{Workflows: map[string]*v1alpha1.Workflow{}, Agents: agents(), AgentObjects: map[string]snapshot.Objects{}}
	for name := range o.Agents {
		o.AgentObjects[name] = gen.Objects(gen.Model(), gen.Model(func(m *v1alpha1.Model) { m.Name, m.Spec.Prices = "free", nil }))
	}
	for name, text := range workflows {
		w := &v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: name}}
		if err := yaml.UnmarshalStrict([]byte(text), &w.Spec); err != nil {
			t.Fatalf("Workflow %s: %v", name, err)
		}
		o.Workflows[name] = w
	}
	return o
}

// of returns the revision of the Workflow main.
func of(t *testing.T, main string, others map[string]string) (*workflow.Revision, error) {
	t.Helper()
	all := map[string]string{"main": main}
	maps.Copy(all, others)
	o := objects(t, all)
	return workflow.Of(o.Workflows["main"], o)
}

func program(t *testing.T, main string, others map[string]string) *workflow.Program {
	t.Helper()
	v, err := of(t, main, others)
	if err != nil {
		t.Fatalf("Of: %v", err)
	}
	p, err := workflow.Compile(v)
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return p
}

// problem returns the reason and the message of a Workflow that is not Ready.
func problem(err error) string {
	var p *snapshot.NotReadyError
	switch {
	case err == nil:
		return "Ready"
	case errors.As(err, &p):
		return p.Reason + ": " + p.Message
	}
	return fmt.Sprintf("%T: %v", err, err)
}

// example returns the objects of an example.
func example(t *testing.T, file string) []*v1alpha1.Workflow {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []*v1alpha1.Workflow
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		if err := yaml.Unmarshal(doc, &kind); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if kind.Kind != "Workflow" {
			continue
		}
		w := &v1alpha1.Workflow{}
		if err := yaml.UnmarshalStrict(doc, w); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		out = append(out, w)
	}
	return out
}

func agentsOf(t *testing.T, file string, o workflow.Objects) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	models := map[string]*v1alpha1.Model{}
	for doc := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var kind metav1.TypeMeta
		_ = yaml.Unmarshal(doc, &kind)
		switch kind.Kind {
		case "Agent":
			a := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Tools = nil })
			if err := yaml.Unmarshal(doc, a); err != nil {
				t.Fatal(err)
			}
			o.Agents[a.Name] = a
		case "Model":
			m := &v1alpha1.Model{}
			if err := yaml.Unmarshal(doc, m); err != nil {
				t.Fatal(err)
			}
			models[m.Name] = m
		}
	}
	for name := range o.Agents {
		o.AgentObjects[name] = snapshot.Objects{Agents: o.Agents, Models: models}
	}
}

func raw(t *testing.T, v any) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
