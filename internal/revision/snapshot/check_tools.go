package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// separator stands between the name of a Toolset and those of its tools.
const separator = "__"

// checkNames looks for two tools of one name. Names that differ in case alone
// are one: models mix them up.
func checkNames(tools []v1alpha1.Tool) *NotReadyError {
	taken := map[string]string{}
	for _, name := range task.ToolsOfEveryAgent {
		taken[strings.ToLower(name)] = "a tool that every agent has"
	}
	for _, t := range tools {
		for _, name := range namesOf(t) {
			key := strings.ToLower(name)
			if by, is := taken[key]; is {
				return &NotReadyError{v1alpha1.ReasonNameTaken, fmt.Sprintf("spec.tools: %s would be called %s, as is %s; give it another name", describe(t), name, by)}
			}
			taken[key] = describe(t)
		}
	}
	return checkPrefixes(tools)
}

// checkPrefixes looks for tools whose names begin as those of a Toolset do: what
// the Toolset offers is not known here, so the names are its own.
func checkPrefixes(tools []v1alpha1.Tool) *NotReadyError {
	for _, set := range tools {
		prefix := string(set.Toolset) + separator
		for _, t := range tools {
			for _, name := range namesOf(t) {
				if set.Toolset != "" && strings.HasPrefix(strings.ToLower(name), prefix) {
					return &NotReadyError{v1alpha1.ReasonNameTaken, fmt.Sprintf("spec.tools: %s would be called %s, and tools of the Toolset %s begin like that; give it another name", describe(t), name, set.Toolset)}
				}
			}
		}
	}
	return nil
}

// checkRunAgents looks for the Agents that one gives work to in Runs of their own.
// They need not be Ready, for their Runs wait; but what they are given must be
// known, because it is in the description that the model reads.
func checkRunAgents(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	for _, name := range RunAgentsOf(agent.Spec) {
		found := o.agent(agent, name)
		if found == nil {
			return &NotReadyError{v1alpha1.ReasonNotFound, fmt.Sprintf("Agent %q not found in namespace %s (named by %s, mode Run); create it, or remove it from spec.tools of %s", name, agent.Namespace, agent.Name, agent.Name)}
		}
		if p := checkInput(found.Spec.Input); p != nil {
			return notReady(found, p)
		}
	}
	return nil
}

// checkHooks looks for hooks of tools that the agent does not have: such a hook
// would never be called, without an error. A custom runner may have tools that are not
// listed, but none that is called as a listed tool was before: names that differ in case
// alone are one.
func checkHooks(spec v1alpha1.AgentSpec) *NotReadyError {
	there := slices.Clone(task.ToolsOfEveryAgent)
	for _, t := range spec.Tools {
		there = append(there, namesOf(t)...)
	}
	mayHaveOthers := runnerImage(spec) != ""
	for _, h := range spec.Hooks {
		for _, name := range h.Tools {
			if text := missingTool(spec, there, string(name), mayHaveOthers); text != "" {
				return &NotReadyError{v1alpha1.ReasonInvalid, fmt.Sprintf("spec.hooks: %s is for the tool %s, %s", h.Name, name, text)}
			}
		}
	}
	return nil
}

// missingTool says what to write in place of a tool that an agent does not have; empty: it has the tool,
// or may have it.
func missingTool(spec v1alpha1.AgentSpec, there []string, name string, mayHaveOthers bool) string {
	is, was := task.Renamed(name)
	switch {
	case slices.Contains(there, name), ofToolset(spec, name):
	case was && slices.Contains(there, is):
		return fmt.Sprintf("which is called %s: write %s", is, is)
	case !mayHaveOthers:
		return "which the agent does not have; the model calls its tools " + strings.Join(there, ", ")
	}
	return ""
}

// namesOf are the names by which a model knows a tool.
func namesOf(t v1alpha1.Tool) []string {
	switch {
	case t.Builtin != "":
		return slices.DeleteFunc(slices.Clone(task.Builtins[string(t.Builtin)].Tools), func(name string) bool {
			return len(t.Allow) > 0 && !slices.Contains(t.Allow, name) || slices.Contains(t.Deny, name)
		})
	case t.Toolset != "":
		return nil // each begins with the name of the Toolset, and no other does
	case t.Name != "":
		return []string{t.Name}
	case t.Agent != "":
		return []string{string(t.Agent)}
	}
	return []string{t.Custom}
}

func describe(t v1alpha1.Tool) string {
	switch {
	case t.Builtin != "":
		return "builtin " + string(t.Builtin)
	case t.Agent != "":
		return "agent " + string(t.Agent)
	case t.Toolset != "":
		return "toolset " + string(t.Toolset)
	}
	return "custom " + t.Custom
}

// ofToolset says whether a tool may be one of a Toolset of the agent: what a
// server offers is not known here.
func ofToolset(spec v1alpha1.AgentSpec, name string) bool {
	return slices.ContainsFunc(spec.Tools, func(t v1alpha1.Tool) bool {
		return t.Toolset != "" && strings.HasPrefix(name, string(t.Toolset)+separator)
	})
}
