package config

import (
	"encoding/json"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/engine"
	"github.com/deckhand-dev/deckhand/runner/policy"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Each name that a rule may read has a value: one that never has would let calls
// pass that the rule forbids.
func TestRulesReadTheRun(t *testing.T) {
	b := &builder{hands: &Hands{}, Parts: Parts{Task: task.Task{
		Run: task.Run{Namespace: "team-a", Name: "fix-1"}, User: "ann", Labels: map[string]string{"tier": "prod"},
	}}}
	for name, tc := range map[string]struct {
		when string
		want policy.Answer
	}{
		"its labels":             {`"tier" in run.labels && run.labels.tier == "prod"`, policy.Deny},
		"labels that it has not": {`"other" in run.labels`, policy.Allow},
		"its name and namespace": {`run.namespace == "team-a" && run.name == "fix-1"`, policy.Deny},
		"who it is for":          {`run.user == "ann"`, policy.Deny},
		"which agent calls":      {`agent.name == "helper" && agent.depth == 1`, policy.Deny},
	} {
		t.Run(name, func(t *testing.T) {
			rule := task.Rule{Name: "r", When: tc.when, Answer: string(policy.Deny)}
			p, err := b.govern(task.Agent{Name: "fixer", Policy: []task.Rule{rule}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			call := step.Call{Name: "Write", Args: json.RawMessage(`{}`)}
			if got := p.Decide(t.Context(), call, step.Scope{Agent: "helper", Depth: 1}); got.Answer != engine.Answer(tc.want) {
				t.Errorf("%s: %+v, want %s", tc.when, got, tc.want)
			}
		})
	}
}
