package config

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Each name that a rule may read has a value: one that never has would let calls
// pass that the rule forbids.
func TestRulesReadTheRun(t *testing.T) {
	b := &builder{sandboxTools: &SandboxTools{}, Parts: Parts{Task: task.Task{
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
			p, err := b.policyOf(task.Agent{Name: "fixer", Policy: []task.Rule{rule}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			call := step.Call{Name: "Write", Args: json.RawMessage(`{}`)}
			if got := p.Decide(t.Context(), call, step.Scope{Agent: "helper", Depth: 1}); got.Answer != toolcall.Answer(tc.want) {
				t.Errorf("%s: %+v, want %s", tc.when, got, tc.want)
			}
		})
	}
}

// A rule about command lines is about those of the tool that has them, whatever the Snapshot calls it.
func TestRulesReadTheCommandLineOfTheShell(t *testing.T) {
	for tool, version := range map[string]int{"shell": 1, "Shell": task.SnapshotVersion} {
		b := &builder{sandboxTools: &SandboxTools{}, Parts: Parts{Snapshot: task.Snapshot{Version: version}}}
		rule := task.Rule{Name: "r", When: "tool == '" + tool + "' && shell.runs('rm')", Answer: string(policy.Deny)}
		p, err := b.policyOf(task.Agent{Name: "fixer", Policy: []task.Rule{rule}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		call := step.Call{Name: tool, Args: json.RawMessage(`{"command":"cd / && rm -r tmp"}`)}
		if got := p.Decide(t.Context(), call, step.Scope{}); got.Answer != toolcall.Answer(policy.Deny) {
			t.Errorf("%s: %+v", tool, got)
		}
	}
}

func TestApprovalIsNamedAfterItsEntry(t *testing.T) {
	for name, tc := range map[string]struct {
		tool   task.Tool
		called []string
		want   string
	}{
		"a Toolset":             {task.Tool{Toolset: "weather"}, []string{"weather__show", "weather__report"}, "approval of toolset weather"},
		"a Toolset of one tool": {task.Tool{Toolset: "weather"}, []string{"weather__show"}, "approval of toolset weather"},
		"a builtin of several":  {task.Tool{Builtin: "Files"}, []string{"Read", "Write"}, "approval of Files"},
		"a builtin of one":      {task.Tool{Builtin: "Shell"}, []string{"shell"}, "approval of shell"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.tool.Approval = &task.Approval{}
			p, err := (&builder{sandboxTools: &SandboxTools{}}).policyOf(task.Agent{Tools: []task.Tool{tc.tool}}, [][]string{tc.called})
			if err != nil {
				t.Fatal(err)
			}
			for _, called := range tc.called {
				if got := p.Decide(t.Context(), step.Call{Name: called, Args: json.RawMessage(`{}`)}, step.Scope{}); got.Rule != tc.want {
					t.Errorf("the rule of %s is %q, want %q", called, got.Rule, tc.want)
				}
			}
		})
	}
}

// The approval of a tool is the short form of a rule at the end of the policy:
// both give the same answer, to the same people, whatever rule comes first.
func TestAnApprovalIsTheLastRuleOfThePolicy(t *testing.T) {
	tools := [][]string{{"Read", "Write"}}
	groups := []string{"leads"}
	first := []task.Rule{
		{Name: "docs", When: `tool == "Write" && args.path.startsWith("/workspace/docs/")`, Answer: string(policy.Allow)},
		{Name: "ci", When: `tool == "Write" && args.path.startsWith("/workspace/ci/")`, Answer: string(policy.Deny)},
	}
	b := &builder{sandboxTools: &SandboxTools{}}
	short, err := b.policyOf(task.Agent{
		Policy: first, Tools: []task.Tool{{Builtin: "Files", Approval: &task.Approval{When: `has(args.path) && args.path != "/workspace/a"`, Approvers: task.Approvers{Groups: groups}}}},
	}, tools)
	if err != nil {
		t.Fatal(err)
	}
	long, err := b.policyOf(task.Agent{
		Policy: append(slices.Clone(first), task.Rule{
			Name: "approval of Files", When: `tool in ["Read", "Write"] && has(args.path) && args.path != "/workspace/a"`, Answer: string(policy.Ask), Approvers: task.Approvers{Groups: groups},
		}),
		Tools: []task.Tool{{Builtin: "Files"}},
	}, tools)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]policy.Answer{
		`Write {"path":"/workspace/docs/x"}`: policy.Allow, `Write {"path":"/workspace/ci/x"}`: policy.Deny, `Write {"path":"/workspace/x"}`: policy.Ask,
		`Read {"path":"/workspace/docs/x"}`: policy.Ask, `Read {"path":"/workspace/a"}`: policy.Allow, `Other {"path":"/workspace/x"}`: policy.Allow,
	}
	for call, answer := range want {
		name, args, _ := strings.Cut(call, " ")
		c := step.Call{Name: name, Args: json.RawMessage(args)}
		got, same := short.Decide(t.Context(), c, step.Scope{}), long.Decide(t.Context(), c, step.Scope{})
		if got.Answer != toolcall.Answer(answer) {
			t.Errorf("%s: %+v, want %s", call, got, answer)
		}
		if diff := cmp.Diff(same, got); diff != "" {
			t.Errorf("%s: policy and approval differ -policy +approval:\n%s", call, diff)
		}
	}
}
