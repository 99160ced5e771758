package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/inputs"
	"github.com/deckhand-dev/deckhand/internal/policy"
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

// deadRules says which rules never decide, because one before them decides about every call;
// empty: there are none.
func deadRules(spec v1alpha1.AgentSpec) string {
	i := slices.IndexFunc(spec.Policy, func(r v1alpha1.PolicyRule) bool {
		when := strings.TrimSpace(r.When)
		return when == "" || when == "true"
	})
	if i < 0 {
		return ""
	}
	var dead []string
	for _, r := range spec.Policy[i+1:] {
		dead = append(dead, strconv.Quote(r.Name))
	}
	if needsApproval(spec) {
		dead = append(dead, "the approvals of spec.tools")
	}
	if len(dead) == 0 {
		return ""
	}
	return fmt.Sprintf("spec.policy: rule %q decides about every call, so these never do: %s. Give it a when, or move it to the end", spec.Policy[i].Name, strings.Join(dead, ", "))
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
	others, p := reachableAgents(agent, o)
	if p != nil {
		return nil, p
	}
	kinds := policy.ToolKinds{}
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		for _, t := range a.Spec.Tools {
			for name, kind := range kindsOf(t, a, o) {
				addKind(kinds, name, kind)
			}
		}
	}
	return kinds, nil
}

// addKind adds a tool. Agents of one tree may each have another tool of one name:
// rules are about all of them.
func addKind(kinds policy.ToolKinds, name string, kind policy.Kind) {
	switch known := kinds[name]; {
	case known == "" || known == kind || kind == policy.Shell:
		kinds[name] = kind
	case known != policy.Shell:
		kinds[name] = policy.Plain
	}
}

// kindsOf are what rules may ask of the tools of one entry of an Agent.
func kindsOf(t v1alpha1.Tool, by *v1alpha1.Agent, o Objects) policy.ToolKinds {
	kinds := policy.ToolKinds{}
	kind := policy.Plain
	switch {
	case t.Builtin == v1alpha1.BuiltinFiles:
		kind = policy.Files
	case task.Builtins[string(t.Builtin)].Web:
		kind = policy.Web
	case t.Builtin != "":
		kind = policy.Other
	case t.Agent != "":
		kind = kindOfAgent(o.agent(by, string(t.Agent)))
	}
	for _, name := range callable(t, o) {
		kinds[name] = kind
	}
	if t.Builtin == v1alpha1.BuiltinShell {
		kinds[task.Builtins[string(t.Builtin)].Tools[0]] = policy.Shell
	}
	if set := o.Toolsets[string(t.Toolset)]; set != nil && set.Spec.Requests != nil {
		for _, r := range set.Spec.Requests.Tools {
			kinds[string(t.Toolset)+separator+r.Name] = kindOfInput(r.Input)
		}
	}
	return kinds
}

// kindOfAgent is the kind of the tool that gives work to an Agent.
func kindOfAgent(a *v1alpha1.Agent) policy.Kind {
	if a == nil {
		return policy.Plain
	}
	return kindOfInput(a.Spec.Input)
}

// kindOfInput returns the kind of a tool by the input that it declares; nil: none. A
// schema can name arguments in several ways, and all of them write the name.
func kindOfInput(in *v1alpha1.Input) policy.Kind {
	if in == nil {
		return policy.Other
	}
	schema := inputs.Schema(in)
	for _, name := range []string{"path", "url", "method"} {
		if bytes.Contains(schema, []byte(strconv.Quote(name))) {
			return policy.Plain
		}
	}
	return policy.Other
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
