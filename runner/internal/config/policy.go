package config

import (
	"cmp"
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	policyshell "github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/shell"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A governor applies the policy of an agent to its calls.
type governor struct {
	policy    *policy.Policy
	run       policy.Run
	dialect   policyshell.Dialect
	shell     string                    // the name of the tool that runs command lines
	approvers map[string]task.Approvers // by rule
}

// policyOf compiles the policy of an agent, followed by the approvals of its tools; nil: it has neither. names are the
// names of the tools of each entry.
func (b *builder) policyOf(agent task.Agent, names [][]string) (toolcall.Policy, error) {
	g := governor{
		run:       policy.Run{Namespace: b.Task.Run.Namespace, Name: b.Task.Run.Name, User: b.Task.User, Labels: b.Task.Labels},
		shell:     task.ToolName(shell.Name, b.Snapshot.Version),
		approvers: map[string]task.Approvers{},
	}
	var rules []policy.Rule
	for _, r := range agent.Policy {
		rules = append(rules, policy.Rule{Name: r.Name, When: r.When, Answer: policy.Answer(r.Answer), Reason: r.Reason})
		g.approvers[r.Name] = r.Approvers
	}
	for i, called := range names {
		t := agent.Tools[i]
		if t.Approval == nil || len(called) == 0 {
			continue
		}
		r := policy.Approval(subject(t, called), t.Approval.When)
		r.Tools = called
		rules = append(rules, r)
		g.approvers[r.Name] = t.Approval.Approvers
	}
	if len(rules) == 0 {
		return nil, nil //nolint:nilnil // no policy is a fact, not a fault
	}
	var err error
	if b.Snapshot.Version != 1 {
		err = policy.CheckFormerNames(rules, policy.FormerOf(task.FormerNames(), b.toolNames(names)))
	}
	if err == nil {
		g.policy, err = policy.Compile(rules, nil)
	}
	if err != nil {
		return nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	if box := b.sandboxTools.Sandbox; box != nil {
		g.dialect = dialect(box.Shell)
	}
	return g, nil
}

// toolNames returns the names of the tools of all agents: a policy also applies to the agents that its agent calls.
func (b *builder) toolNames(called [][]string) []string {
	all := slices.Concat(called...)
	for _, a := range append([]task.Agent{b.Snapshot.Agent}, b.Snapshot.Agents...) {
		for _, t := range a.Tools {
			all = append(all, cmp.Or(t.Name, t.Agent, t.Custom))
			all = append(all, task.Builtins[t.Builtin].Tools...)
		}
	}
	return all
}

// subject returns the name for the approval of an entry of spec.tools: the Toolset, or the tool as the model calls it.
// An entry with several built-in tools has its own name.
func subject(t task.Tool, called []string) string {
	switch {
	case t.Toolset != "":
		return "toolset " + t.Toolset
	case t.Builtin != "" && len(called) > 1:
		return t.Builtin
	}
	return called[0]
}

// dialect returns the language of the shell of an image.
func dialect(program string) policyshell.Dialect {
	if strings.HasPrefix(path.Base(program), "bash") {
		return policyshell.Bash
	}
	return policyshell.POSIX
}

// Decide implements [toolcall.Policy].
func (g governor) Decide(ctx context.Context, c step.Call, by step.Scope) toolcall.PolicyResult {
	call := policy.Call{
		Tool: c.Name, Args: c.Args, Run: g.run, Dialect: g.dialect,
		Agent: policy.Agent{Name: by.Agent, Depth: by.Depth},
	}
	if c.Name == g.shell {
		var said struct {
			Command string `json:"command"`
		}
		if err := json.Unmarshal(c.Args, &said); err == nil {
			call.Shell = said.Command
		}
	}
	v := g.policy.Decide(ctx, call)
	reason := v.Reason
	if len(v.Hidden) > 0 && v.Answer == policy.Ask {
		reason += " (it does not show what it runs: " + strings.Join(v.Hidden, "; ") + ")"
	}
	return toolcall.PolicyResult{Answer: toolcall.Answer(v.Answer), Rule: v.Rule, Reason: reason, Approvers: g.approvers[v.Rule], Once: v.Failed}
}

// requireConfinement refuses a sandbox whose confinement is not complete. The sandbox cannot test NetworkPolicies, so
// the runner must do so first; then this sets Network to Enforced.
func (b *builder) requireConfinement(ctx context.Context, c *sandbox.Confinement) error {
	const required = "sandbox.confinement is Required, but "
	if c.Process != sandbox.Enforced || c.Files != sandbox.Enforced || c.Network == sandbox.Unenforced {
		return misconfigured(required+"on this node process is %s, files are %s and network is %s (Landlock ABI %d). Choose nodes with a newer kernel with podTemplate.nodeSelector, or set BestEffort",
			c.Process, c.Files, c.Network, c.LandlockABI)
	}
	if b.Network == nil {
		return misconfigured(required + "network is PortsOnly: this pod has no NetworkPolicy of Deckhand. Set the chart's value networkPolicies.enabled to true, or set BestEffort")
	}
	switch f := b.Network(ctx); f.State {
	case networkcheck.Closed:
		c.Network = sandbox.Enforced
		return nil
	case networkcheck.Open:
		return misconfigured(required + "network is PortsOnly: this pod connected to a port of the operator that its NetworkPolicy does not allow. Use a network plugin that enforces NetworkPolicies, or set BestEffort. If the plugin does, remove policies of your own that select this pod, and do not name a Service of the operator's namespace in the Agent")
	default:
		return task.End(task.ReasonToolUnavailable, required+"it is unknown whether NetworkPolicies are enforced: %w. See whether the operator is ready, and whether its Service and its NetworkPolicy have the ports 20471 and 20472 of the chart", f.Err)
	}
}
