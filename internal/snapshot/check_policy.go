package snapshot

import (
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/policy"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// checkPolicy compiles what an Agent says of its calls, as the runner will: the
// rules, and behind them the approvals of its tools.
func checkPolicy(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	if len(agent.Spec.Policy) == 0 && !needsApproval(agent.Spec) {
		return nil
	}
	kinds, p := toolKinds(agent, o)
	if p != nil {
		return p
	}
	var rules []policy.Rule
	for _, r := range agent.Spec.Policy {
		rules = append(rules, policy.Rule{Name: r.Name, When: r.When, Answer: policy.Answer(r.Answer), Reason: r.Reason})
	}
	if _, err := policy.Compile(rules, kinds); err != nil {
		return invalidPolicy("spec.policy: " + first(err))
	}
	for _, t := range agent.Spec.Tools {
		if t.Approval == nil {
			continue
		}
		rule := policy.Rule{Name: describe(t), Tools: callable(t, o), When: t.Approval.When, Answer: policy.Ask}
		if _, err := policy.Compile([]policy.Rule{rule}, kinds); err != nil {
			return invalidPolicy(fmt.Sprintf("spec.tools: approval of %s: %s", describe(t), strings.TrimPrefix(first(err), fmt.Sprintf("rule 1 %q: ", rule.Name))))
		}
	}
	return nil
}

func needsApproval(spec v1alpha1.AgentSpec) bool {
	for _, t := range spec.Tools {
		if t.Approval != nil {
			return true
		}
	}
	return false
}

func invalidPolicy(message string) *NotReadyError {
	return &NotReadyError{v1alpha1.ReasonPolicyInvalid, task.Cut(message, task.MaxMessage)}
}

// first is the first of what is wrong with rules, and where.
func first(err error) string {
	if one, is := errors.AsType[*policy.Error](err); is {
		return one.Error()
	}
	return err.Error()
}

// toolKinds are the tools that rules of an Agent may name: its own and those of
// the Agents that it may reach, whose calls must pass its policy too, but not finish
// and reject: a Run can always end. A runner of
// one's own may bring tools that are not listed, so there rules name what they
// like.
func toolKinds(agent *v1alpha1.Agent, o Objects) (policy.ToolKinds, *NotReadyError) {
	if runnerImage(agent.Spec) != "" {
		return nil, nil
	}
	others, p := reach(agent, o)
	if p != nil {
		return nil, p
	}
	kinds := policy.ToolKinds{}
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		for _, t := range a.Spec.Tools {
			addKinds(kinds, t, o)
		}
	}
	return kinds, nil
}

// addKinds adds what rules may ask of the tools of one entry.
func addKinds(kinds policy.ToolKinds, t v1alpha1.Tool, o Objects) {
	kind := policy.Plain
	if t.Builtin == v1alpha1.BuiltinFiles {
		kind = policy.Files
	}
	for _, name := range callable(t, o) {
		kinds[name] = kind
	}
	if t.Builtin == v1alpha1.BuiltinShell {
		kinds[called[t.Builtin][0]] = policy.Shell
	}
}

// callable are the names by which a model calls a tool. What an MCP server
// offers is not known here: an asterisk stands for it.
func callable(t v1alpha1.Tool, o Objects) []string {
	if t.Toolset == "" {
		return namesOf(t)
	}
	prefix := string(t.Toolset) + separator
	set := o.Toolsets[string(t.Toolset)]
	if set == nil || set.Spec.Requests == nil {
		return []string{prefix + "*"}
	}
	var out []string
	for _, r := range set.Spec.Requests.Tools {
		out = append(out, prefix+r.Name)
	}
	return out
}
