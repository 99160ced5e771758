package cached_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A namespace holds Agents and Models, and counts how often it is read.
type namespace struct {
	client.Reader
	agents map[string]*v1alpha1.Agent
	models map[string]*v1alpha1.Model
	reads  int
	broken error
}

func (n *namespace) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	n.reads++
	if n.broken != nil {
		return n.broken
	}
	missing := apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	switch o := o.(type) {
	case *v1alpha1.Agent:
		if found := n.agents[key.Name]; found != nil {
			found.DeepCopyInto(o)
			return nil
		}
	case *v1alpha1.Model:
		if found := n.models[key.Name]; found != nil {
			found.DeepCopyInto(o)
			return nil
		}
	}
	return missing
}

func (n *namespace) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	switch list := list.(type) {
	case *v1alpha1.AgentList:
		for _, a := range n.agents {
			list.Items = append(list.Items, *a)
		}
	case *v1alpha1.ModelList:
		for _, m := range n.models {
			list.Items = append(list.Items, *m)
		}
	}
	return n.broken
}

// team is a namespace out of lines: "agent a uses m calls b c" and "model m
// then n".
func team(lines ...string) *namespace {
	n := &namespace{agents: map[string]*v1alpha1.Agent{}, models: map[string]*v1alpha1.Model{}}
	for _, line := range lines {
		words := strings.Fields(line)
		if words[0] == "model" {
			n.models[words[1]] = gen.Model(func(m *v1alpha1.Model) {
				m.Name = words[1]
				for _, f := range words[min(3, len(words)):] {
					m.Spec.Fallbacks = append(m.Spec.Fallbacks, v1alpha1.ObjectName(f))
				}
			})
			continue
		}
		n.agents[words[1]] = gen.Agent(func(a *v1alpha1.Agent) {
			a.Name, a.Spec.Model, a.Spec.Tools = words[1], words[3], nil
			for _, b := range words[min(5, len(words)):] {
				a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: v1alpha1.ObjectName(b)})
			}
		})
	}
	return n
}

func there[T any](m map[string]*T) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if m[name] != nil {
			out = append(out, name)
		}
	}
	return out
}

func TestFromAgent(t *testing.T) {
	n := team(
		"agent a uses m calls b c", "agent b uses n calls a c", "agent c uses m calls gone", "agent stranger uses m",
		"model m then n o", "model n then p m", "model o then nothing", "model p", "model strange",
	)
	n.agents["a"].Spec.Routes = []v1alpha1.Route{{For: v1alpha1.RouteRepair, Model: "small"}}
	n.models["small"] = gen.Model(func(m *v1alpha1.Model) { m.Name = "small" })
	o, err := refs.OfAgent(t.Context(), cached.Reader(n), n.agents["a"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, there(o.Agents)); diff != "" {
		t.Errorf("Agents -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m", "n", "o", "p", "small"}, there(o.Models)); diff != "" {
		t.Errorf("Models -want +got:\n%s", diff)
	}
	if n.reads != 9 { // b, c and gone; six Models, one of which is not there
		t.Errorf("%d reads", n.reads)
	}
}

// Of an Agent that works in a Run of its own only itself is read, whoever asks it;
// and whoever asks it is found when it changes.
func TestAgentsInRunsOfTheirOwn(t *testing.T) {
	n := team("agent a uses m calls b", "agent b uses m calls c a gone", "agent c uses n calls d", "agent d uses n", "model m", "model n")
	for i := range n.agents["b"].Spec.Tools {
		n.agents["b"].Spec.Tools[i].Delegation = &v1alpha1.Delegation{Mode: v1alpha1.AgentModeRun}
	}
	o, err := refs.OfAgent(t.Context(), cached.Reader(n), n.agents["a"])
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, there(o.Agents)); diff != "" {
		t.Errorf("Agents -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"m"}, there(o.Models)); diff != "" {
		t.Errorf("Models -want +got:\n%s", diff)
	}
	for name, want := range map[string][]string{"c": {"a", "b", "c"}, "gone": {"a", "b", "gone"}, "d": {"c", "d"}, "a": {"a", "b"}} {
		got, err := cached.AgentsUsingAgent(t.Context(), n, "team-a", name)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("those that may reach %s: %v, -want +got:\n%s", name, err, diff)
		}
	}
}

// However many there are, what makes an Agent not Ready is known after a few.
func TestFromAgentStopsInTime(t *testing.T) {
	var lines []string
	for i := range 1000 {
		lines = append(lines, fmt.Sprintf("agent a%d uses m calls a%d", i, i+1))
	}
	n := team(append(lines, "model m")...)
	o, err := refs.OfAgent(t.Context(), cached.Reader(n), n.agents["a0"])
	if err != nil || n.reads > snapshot.MaxAgents+5 {
		t.Errorf("%d reads, error %v", n.reads, err)
	}
	var problem *snapshot.NotReadyError
	if _, err := snapshot.Of(n.agents["a0"], o); !errors.As(err, &problem) || problem.Reason != v1alpha1.ReasonTooLarge {
		t.Errorf("Of() = %v", err)
	}
}

func TestFromModel(t *testing.T) {
	n := team("model m then n", "model n then o", "model o then m gone", "model strange")
	models, err := refs.OfModel(t.Context(), cached.Reader(n), n.models["m"])
	if diff := cmp.Diff([]string{"m", "n", "o"}, there(models)); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

func TestWhatCannotBeReadIsAnError(t *testing.T) {
	n := team("agent a uses m calls b", "model m then n")
	n.broken = errors.New("down") //nolint:err113 // a fault
	if _, err := refs.OfAgent(t.Context(), cached.Reader(n), n.agents["a"]); !errors.Is(err, n.broken) {
		t.Errorf("FromAgent() = %v", err)
	}
	if _, err := refs.OfModel(t.Context(), cached.Reader(n), n.models["m"]); !errors.Is(err, n.broken) {
		t.Errorf("FromModel() = %v", err)
	}
	if _, err := cached.AgentsUsingAgent(t.Context(), n, "team-a", "a"); !errors.Is(err, n.broken) {
		t.Errorf("ToAgent() = %v", err)
	}
	if _, _, err := cached.UsersOfModel(t.Context(), n, "team-a", "m"); !errors.Is(err, n.broken) {
		t.Errorf("ToModel() = %v", err)
	}
}

// Whoever may reach what changed is found, though it does not exist yet.
func TestBack(t *testing.T) {
	n := team(
		"agent a uses m calls b", "agent b uses n calls c", "agent c uses n calls a", "agent d uses o calls new", "agent e uses m",
		"model m then n", "model n then o", "model o then new", "model p then m",
	)
	agents := func(name string) []string {
		t.Helper()
		out, err := cached.AgentsUsingAgent(t.Context(), n, "team-a", name)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	models := func(name string) []string {
		t.Helper()
		models, agents, err := cached.UsersOfModel(t.Context(), n, "team-a", name)
		if err != nil {
			t.Fatal(err)
		}
		return append(append(models, "|"), agents...)
	}
	for what, tc := range map[string]struct{ want, got []string }{
		"an Agent in a circle":     {[]string{"a", "b", "c"}, agents("c")},
		"an Agent nobody calls":    {[]string{"e"}, agents("e")},
		"an Agent that is new":     {[]string{"d", "new"}, agents("new")},
		"a Model and its users":    {[]string{"m", "p", "|", "a", "b", "c", "e"}, models("m")},
		"a Model that is new":      {[]string{"m", "n", "new", "o", "p", "|", "a", "b", "c", "d", "e"}, models("new")},
		"a Model that nobody uses": {[]string{"p", "|"}, models("p")},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
}
