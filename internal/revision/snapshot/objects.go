package snapshot

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// MaxAgents is how many other Agents one may reach in its pod.
const MaxAgents = 16

// Objects are what an Agent may reach: everything of its namespace that it, or
// something that it names, names. What is not in the maps does not exist.
type Objects struct {
	// Agents holds those that work in its pod, and those that one of them gives
	// work to in Runs of their own: of these, nothing that they name.
	Agents map[string]*v1alpha1.Agent
	Models map[string]*v1alpha1.Model
	// Toolsets holds those that its Agents name.
	Toolsets map[string]*v1alpha1.Toolset
}

// AgentsOf are the Agents that one gives work to in its pod, each once, in order.
func AgentsOf(spec v1alpha1.AgentSpec) []string {
	return agentsOf(spec, v1alpha1.AgentModePod)
}

// RunAgentsOf are the Agents that one gives work to in Runs of their own, each
// once, in order.
func RunAgentsOf(spec v1alpha1.AgentSpec) []string {
	return agentsOf(spec, v1alpha1.AgentModeRun)
}

func agentsOf(spec v1alpha1.AgentSpec, mode v1alpha1.AgentMode) []string {
	var out []string
	for _, t := range spec.Tools {
		if name := string(t.Agent); name != "" && modeOf(t) == mode && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// modeOf is where an agent as a tool works.
func modeOf(t v1alpha1.Tool) v1alpha1.AgentMode {
	if t.Delegation == nil || t.Delegation.Mode == "" {
		return v1alpha1.AgentModePod
	}
	return t.Delegation.Mode
}

// ToolsetsOf are the names of the Toolsets whose tools an Agent may call, each
// once.
func ToolsetsOf(spec v1alpha1.AgentSpec) []string {
	var out []string
	for _, t := range spec.Tools {
		if name := string(t.Toolset); name != "" && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// ModelsOf are the Models that an Agent names, each once: its own first.
func ModelsOf(spec v1alpha1.AgentSpec) []string {
	out := []string{spec.Model}
	for _, r := range spec.Routes {
		if name := string(r.Model); !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

// chain is a Model and its fallbacks, by name, in the order in which they are
// asked.
func chain(name string, o Objects) []string {
	out := []string{name}
	if m := o.Models[name]; m != nil {
		for _, f := range m.Spec.Fallbacks {
			out = append(out, string(f))
		}
	}
	return out
}

// reachableAgents returns the Agents to which one may delegate in its pod, those that they
// may, and so on, itself left out. They may be in a circle; more than are allowed are not
// looked for.
func reachableAgents(agent *v1alpha1.Agent, o Objects) ([]*v1alpha1.Agent, *NotReadyError) {
	by := map[string]string{agent.Name: ""} // who named it
	next := []*v1alpha1.Agent{agent}
	var out []*v1alpha1.Agent
	for len(next) > 0 {
		from := next[0]
		next = next[1:]
		for _, name := range AgentsOf(from.Spec) {
			if _, seen := by[name]; seen || len(out) > MaxAgents {
				continue
			}
			by[name] = from.Name
			found := o.Agents[name]
			if found == nil {
				return nil, &NotReadyError{v1alpha1.ReasonNotFound, fmt.Sprintf("Agent %q not found in namespace %s (named by %s); create it, or remove it from spec.tools of %s", name, agent.Namespace, way(by, from.Name), from.Name)}
			}
			out, next = append(out, found), append(next, found)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Agent) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// way is how an Agent is reached: a -> b -> c.
func way(by map[string]string, name string) string {
	out := []string{name}
	for name = by[name]; name != ""; name = by[name] {
		out = append(out, name)
	}
	slices.Reverse(out)
	return strings.Join(out, " -> ")
}

// circle is a way along fallbacks that leads back to where it was, from a Model
// on; empty: there is none.
func circle(name string, models map[string]*v1alpha1.Model) []string {
	var path []string
	done := map[string]bool{} // no circle from here
	var walk func(string) bool
	walk = func(at string) bool {
		back := slices.Contains(path, at)
		path = append(path, at)
		if back {
			return true
		}
		if m := models[at]; m != nil && !done[at] {
			for _, f := range m.Spec.Fallbacks {
				if walk(string(f)) {
					return true
				}
			}
		}
		done[at] = true
		path = path[:len(path)-1]
		return false
	}
	walk(name)
	return path
}
