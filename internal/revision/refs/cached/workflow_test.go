package cached_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
)

// listing is a namespace with nothing but Workflows.
type listing struct {
	client.Reader
	workflows []v1alpha1.Workflow
	broken    error
}

func (l *listing) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if all, is := list.(*v1alpha1.WorkflowList); is {
		all.Items = l.workflows
	}
	return l.broken
}

// workflows are those of lines: "a does x y; ends z; has b", with agents x, y
// and, in finally, z, and the Workflow b.
func workflows(lines ...string) *listing {
	var out listing
	for _, line := range lines {
		words := strings.Fields(line)
		var w v1alpha1.Workflow
		w.Name = words[0]
		verb := ""
		for _, word := range words[1:] {
			name := v1alpha1.ObjectName(word)
			switch {
			case word == "does" || word == "ends" || word == "has":
				verb = word
			case verb == "does":
				w.Spec.Nodes = append(w.Spec.Nodes, v1alpha1.Node{Agent: name})
			case verb == "ends":
				w.Spec.Finally = append(w.Spec.Finally, v1alpha1.Node{Agent: name})
			default:
				w.Spec.Nodes = append(w.Spec.Nodes, v1alpha1.Node{Workflow: name})
			}
		}
		out.workflows = append(out.workflows, w)
	}
	return &out
}

func TestNamedBy(t *testing.T) {
	w := workflows("a does x y x has b b ends y z").workflows[0]
	agents, nested := refs.InWorkflow(w.Spec)
	if diff := cmp.Diff([][]string{{"x", "y", "z"}, {"b"}}, [][]string{agents, nested}); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Whatever may reach what changed is found, in circles too, though it does not
// exist yet.
func TestBackToWorkflows(t *testing.T) {
	l := workflows("a has b", "b has c", "c does x has a", "d ends x y", "e has new")
	to := func(name string) []string {
		out, err := cached.WorkflowsUsingWorkflow(t.Context(), l, "team-a", name)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	by := func(agents ...string) []string {
		out, err := cached.WorkflowsUsingAgents(t.Context(), l, "team-a", agents)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for what, tc := range map[string]struct{ want, got []string }{
		"a Workflow in a circle":    {[]string{"a", "b", "c"}, to("c")},
		"one that nobody names":     {[]string{"d"}, to("d")},
		"one that is new":           {[]string{"e", "new"}, to("new")},
		"an Agent of two":           {[]string{"a", "b", "c", "d"}, by("x")},
		"one in finally":            {[]string{"d"}, by("y", "z")},
		"an Agent that nobody uses": {nil, by("z")},
	} {
		if diff := cmp.Diff(tc.want, tc.got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", what, diff)
		}
	}
	l.broken = errors.New("down") //nolint:err113 // a fault
	if _, err := cached.WorkflowsUsingWorkflow(t.Context(), l, "team-a", "a"); !errors.Is(err, l.broken) {
		t.Errorf("ToWorkflow() = %v", err)
	}
	if _, err := cached.WorkflowsUsingAgents(t.Context(), l, "team-a", []string{"x"}); !errors.Is(err, l.broken) {
		t.Errorf("WorkflowsTo() = %v", err)
	}
}
