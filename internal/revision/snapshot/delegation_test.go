package snapshot_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// delegatingAgent is an Agent that delegates to others in child Runs.
func delegatingAgent(name string, others ...string) *v1alpha1.Agent {
	a := named(name, others...)
	for i := range a.Spec.Tools {
		a.Spec.Tools[i].Delegation = &v1alpha1.Delegation{Mode: v1alpha1.AgentModeRun}
	}
	return a
}

// An Agent that works in a Run of its own is not in the pod: only what a model is
// told of it is, and nothing of what it may reach itself.
func TestAgentsInRunsOfTheirOwn(t *testing.T) {
	b := gen.Agent(func(a *v1alpha1.Agent) {
		a.Name, a.Spec.Model, a.Spec.Description, a.Spec.Tools = "b", "nobody", "Reviews a file.", []v1alpha1.Tool{{Agent: "gone"}}
		a.Spec.Input = &v1alpha1.Input{Schema: rawOf(`{ "type": "object", "properties": {"file": {"type": "string"}} }`)}
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "acme/runner:1"}
	})
	a := delegatingAgent("a", "b", "a")
	a.Spec.Tools[1].Name = "again"
	v, err := snapshot.Of(a, with(agents{b}))
	if err != nil {
		t.Fatal(err)
	}
	want := []task.Tool{
		{Agent: "b", Mode: task.ModeRun, Description: "Reviews a file.", InputSchema: []byte(`{"type":"object","properties":{"file":{"type":"string"}}}`)},
		{Agent: "a", Mode: task.ModeRun, Name: "again"},
	}
	if diff := cmp.Diff(want, v.Snapshot.Agent.Tools); diff != "" {
		t.Errorf("tools: -want +got:\n%s", diff)
	}
	if n := len(v.Snapshot.Agents); n > 0 {
		t.Errorf("%d other Agents are in the pod", n)
	}
	b.Spec.Description = "Reviews another."
	if again, err := snapshot.Of(a, with(agents{b})); err != nil || again.Hash == v.Hash {
		t.Errorf("what a model is told changed, and the revision did not: %v", err)
	}
	b.Spec.Instructions = "You are somebody else."
	if again, err := snapshot.Of(a, with(agents{b})); err != nil || again.Snapshot.Agent.Tools[0].Description != b.Spec.Description {
		t.Errorf("%v", err)
	}
}

func TestDelegationInChildRunsIsValidated(t *testing.T) {
	bad := named("b")
	bad.Spec.Input = &v1alpha1.Input{Schema: rawOf(`{"type":"string"}`)}
	in := named("in")
	in.Spec.Tools = delegatingAgent("in", "b").Spec.Tools
	taken := delegatingAgent("a", "b")
	taken.Spec.Tools = append(taken.Spec.Tools, v1alpha1.Tool{Custom: "B"})
	cases := map[string]struct {
		agent   *v1alpha1.Agent
		objects snapshot.Objects
		reason  string
		says    string
	}{
		"one that is not there":               {delegatingAgent("a", "b"), with(nil), v1alpha1.ReasonNotFound, `Agent "b" not found in namespace team-a (named by a, mode Run); create it, or remove it from spec.tools of a`},
		"one that an Agent in the pod asks":   {named("a", "in"), with(agents{in}), v1alpha1.ReasonNotReady, `Agent "in" is not ready: Agent "b" not found`},
		"one of which nobody knows the input": {delegatingAgent("a", "b"), with(agents{bad}), v1alpha1.ReasonNotReady, `Agent "b" is not ready: spec.input.schema: type must be object`},
		"one with the name of another tool":   {taken, with(agents{named("b")}), v1alpha1.ReasonNameTaken, "custom B would be called B, as is agent b"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := snapshot.Of(tc.agent, tc.objects)
			var problem *snapshot.NotReadyError
			if !errors.As(err, &problem) || problem.Reason != tc.reason || !strings.Contains(problem.Message, tc.says) {
				t.Errorf("Of() = %v, want reason %s and %q", err, tc.reason, tc.says)
			}
		})
	}
}

// However many work in Runs of their own, they take no place in the pod.
func TestAgentsInRunsOfTheirOwnTakeNoPlace(t *testing.T) {
	all := row(snapshot.MaxAgents - 1)
	last := all[len(all)-1]
	others := agents{}
	for _, name := range []string{"p", "q", "r", "s", "t"} {
		last.Spec.Tools = append(last.Spec.Tools, v1alpha1.Tool{Agent: v1alpha1.ObjectName(name), Delegation: &v1alpha1.Delegation{Mode: v1alpha1.AgentModeRun}})
		others = append(others, named(name))
	}
	v, err := snapshot.Of(named("fixer", "a00"), with(append(all, others...)))
	if err != nil || len(v.Snapshot.Agents) != snapshot.MaxAgents {
		t.Errorf("Of() = %v", err)
	}
}
