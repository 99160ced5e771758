package snapshot

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/policylint"
	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// checkPolicy compiles the policy of an Agent as the runner will: the rules, followed by the approvals of its tools.
func checkPolicy(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	if len(agent.Spec.Policy) == 0 && !needsApproval(agent.Spec) {
		return nil
	}
	kinds, p := toolKinds(agent, o)
	if p != nil {
		return p
	}
	wrong, p := policyProblems(agent, o, kinds)
	switch {
	case p != nil:
		return p
	case len(wrong) > 0:
		return invalidPolicy(wrong[0])
	}
	whole := rulesOf(agent.Spec)
	for _, t := range agent.Spec.Tools {
		if t.Approval == nil {
			continue
		}
		r := approvalOf(t, o)
		r.Name = fmt.Sprintf("approval %d of spec.tools", len(whole)+1)
		whole = append(whole, r)
	}
	// The runner makes one policy of all, and what bounds a policy bounds them together.
	if _, err := policylint.Compile(whole, kinds); err != nil {
		return invalidPolicy("spec.policy with the approvals of spec.tools: " + first(err))
	}
	return nil
}

// PolicyProblems returns the errors in the rules of an Agent, and in the approvals of its tools. The first makes the
// Agent not Ready.
func PolicyProblems(agent *v1alpha1.Agent, o Objects) []string {
	kinds, p := toolKinds(agent, o)
	if p != nil {
		return nil // it is the cause
	}
	wrong, _ := policyProblems(agent, o, kinds)
	for i, message := range wrong {
		wrong[i] = invalidPolicy(message).Message
	}
	return wrong
}

func policyProblems(agent *v1alpha1.Agent, o Objects, kinds policy.ToolKinds) ([]string, *NotReadyError) {
	names, p := toolNames(agent, o)
	if p != nil {
		return nil, p
	}
	former := policy.FormerOf(task.FormerNames(), names)
	var wrong []string
	for _, e := range ruleErrors(rulesOf(agent.Spec), kinds, former) {
		wrong = append(wrong, "spec.policy: "+e.Error())
	}
	for _, t := range agent.Spec.Tools {
		if t.Approval == nil {
			continue
		}
		for _, e := range ruleErrors([]policy.Rule{approvalOf(t, o)}, kinds, former) {
			wrong = append(wrong, approvalMessage(t, e))
		}
	}
	return wrong, nil
}

// ruleErrors returns the error of each rule: that it uses a former name of a tool, also for an Agent with its own
// runner image, or that it does not compile.
func ruleErrors(rules []policy.Rule, kinds policy.ToolKinds, former []policy.Former) []*policy.Error {
	wrong := make([]*policy.Error, len(rules)+1) // with a rule too many
	_, err := policylint.Compile(rules, kinds)
	for _, e := range errorsOf(err) {
		wrong[e.Rule] = e
	}
	for i, r := range rules {
		for _, e := range errorsOf(policy.CheckFormerNames([]policy.Rule{r}, former)) {
			e.Rule = i
			wrong[i] = e
		}
	}
	return slices.DeleteFunc(wrong, func(e *policy.Error) bool { return e == nil })
}

// errorsOf returns the errors of rules that are joined in one.
func errorsOf(err error) []*policy.Error {
	if joined, is := err.(interface{ Unwrap() []error }); is {
		var out []*policy.Error
		for _, e := range joined.Unwrap() {
			out = append(out, errorsOf(e)...)
		}
		return out
	}
	if one, is := errors.AsType[*policy.Error](err); is {
		return []*policy.Error{one}
	}
	return nil
}

// toolNames returns the names of the tools of an Agent, and of the Agents that it can call.
func toolNames(agent *v1alpha1.Agent, o Objects) ([]string, *NotReadyError) {
	others, p := reachableAgents(agent, o)
	names := slices.Clone(task.ToolsOfEveryAgent)
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		for _, t := range a.Spec.Tools {
			names = append(names, namesOf(t)...)
		}
	}
	return names, p
}

// rulesOf returns the rules of spec.policy.
func rulesOf(spec v1alpha1.AgentSpec) []policy.Rule {
	var rules []policy.Rule
	for _, r := range spec.Policy {
		rules = append(rules, policy.Rule{Name: r.Name, When: r.When, Answer: policy.Answer(r.Answer), Reason: r.Reason})
	}
	return rules
}

// approvalOf returns the rule of an entry of spec.tools with an approval.
func approvalOf(t v1alpha1.Tool, o Objects) policy.Rule {
	return policy.Rule{Name: describe(t), Tools: callable(t, o), When: t.Approval.When, Answer: policy.Ask}
}

// approvalMessage describes the error in the approval of an entry of spec.tools.
func approvalMessage(t v1alpha1.Tool, err error) string {
	return fmt.Sprintf("spec.tools: approval of %s: %s", describe(t), strings.TrimPrefix(first(err), fmt.Sprintf("rule 1 %q: ", describe(t))))
}

// deadRules describes which rules never decide, because an earlier one decides every call; empty: there are none.
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

// idleRules describes which rules are true for no tool, or read an argument that no tool has.
func idleRules(agent *v1alpha1.Agent, o Objects) []string {
	kinds, p := toolKinds(agent, o)
	if p != nil || len(agent.Spec.Policy) == 0 && !needsApproval(agent.Spec) {
		return nil
	}
	arguments := argumentsOf(agent, o)
	var out []string
	for _, w := range policylint.Warnings(rulesOf(agent.Spec), kinds, arguments) {
		out = append(out, "spec.policy: "+w.Error())
	}
	for _, t := range agent.Spec.Tools {
		if t.Approval == nil {
			continue
		}
		for _, w := range policylint.Warnings([]policy.Rule{approvalOf(t, o)}, kinds, arguments) {
			out = append(out, approvalMessage(t, w))
		}
	}
	return out
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
	return &NotReadyError{v1alpha1.ReasonInvalid, task.Cut(message, task.MaxMessage)}
}

// first returns the first of joined errors of rules, with its place.
func first(err error) string {
	if one, is := errors.AsType[*policy.Error](err); is {
		return one.Error()
	}
	return err.Error()
}

// toolKinds returns the tools that rules of an Agent may name: its own and those of the Agents that it can call, whose
// calls must pass its policy too, but not finish and reject, because a Run must always be able to end. A custom runner
// may have tools that are not listed, so its rules may name any tool.
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

// kindsOf returns the kinds of the tools of one entry of an Agent, for rules.
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

// kindOfAgent returns the kind of the tool that gives work to an Agent.
func kindOfAgent(a *v1alpha1.Agent) policy.Kind {
	if a == nil {
		return policy.Plain
	}
	return kindOfInput(a.Spec.Input)
}

// kindOfInput returns the kind of a tool with a declared input, or nil. A schema can name arguments in several ways,
// all of which contain the name.
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

// callable returns the names by which a model calls a tool. The tools of an MCP server are not known here: an asterisk
// represents them.
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

// argumentsOf returns the known arguments of tools for the rules of an Agent: those of built-ins, and of tools whose
// input is declared as fields. A schema can allow others, and two Agents may have different tools of one name: then the
// arguments are not known.
func argumentsOf(agent *v1alpha1.Agent, o Objects) policylint.Arguments {
	others, _ := reachableAgents(agent, o)
	known := policylint.Arguments{}
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		for _, t := range a.Spec.Tools {
			arguments := argumentsOfTool(t, a, o)
			for _, name := range callable(t, o) {
				addArguments(known, name, arguments[name])
			}
		}
	}
	return known
}

// addArguments adds the arguments of a tool; nil: not known.
func addArguments(known policylint.Arguments, name string, names []string) {
	before, seen := known[name]
	if names == nil || seen && before == nil {
		known[name] = nil
		return
	}
	known[name] = append(append([]string{}, before...), names...)
}

// argumentsOfTool returns the known arguments of the tools of one entry of an Agent.
func argumentsOfTool(t v1alpha1.Tool, by *v1alpha1.Agent, o Objects) policylint.Arguments {
	known := policylint.Arguments{}
	switch set := o.Toolsets[string(t.Toolset)]; {
	case t.Builtin != "":
		return task.BuiltinArguments
	case t.Agent != "":
		if a := o.agent(by, string(t.Agent)); a != nil {
			known[namesOf(t)[0]] = fieldsOf(a.Spec.Input, "prompt")
		}
	case set != nil && set.Spec.Requests != nil:
		for _, r := range set.Spec.Requests.Tools {
			known[string(t.Toolset)+separator+r.Name] = fieldsOf(r.Input)
		}
	}
	return known
}

// fieldsOf returns the names of the fields of an input or, without an input, the others; nil: it has a schema.
func fieldsOf(in *v1alpha1.Input, others ...string) []string {
	if in == nil {
		return append([]string{}, others...)
	}
	if in.Schema != nil {
		return nil
	}
	names := []string{}
	for _, f := range in.Fields {
		names = append(names, f.Name)
	}
	return names
}
