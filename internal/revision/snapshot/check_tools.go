package snapshot

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// separator separates the name of a Toolset from the names of its tools.
const separator = "__"

// checkNames finds two tools with one name. Names that differ only in case count as equal, because models confuse them.
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

// checkPrefixes finds tools whose names begin like those of a Toolset. The tools of the Toolset are not known here, so
// all names with its prefix are reserved for it.
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

// checkRunAgents checks the Agents to which an Agent delegates in child Runs. They need not be Ready, because their
// Runs wait; but their input must be known, because it is in the description for the model.
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

// checkHooks finds hooks for tools that the agent does not have: such a hook would never be called, without an error. A
// custom runner may have tools that are not listed, but none with a former name of a listed tool; names that differ
// only in case count as equal.
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

// missingTool returns what to write instead of a tool that an agent does not have; empty: it has the tool, or may have
// it.
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

// namesOf returns the names by which a model calls a tool.
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

// ofToolset reports whether a tool can belong to a Toolset of the agent, whose tools are not known here.
func ofToolset(spec v1alpha1.AgentSpec, name string) bool {
	return slices.ContainsFunc(spec.Tools, func(t v1alpha1.Tool) bool {
		return t.Toolset != "" && strings.HasPrefix(name, string(t.Toolset)+separator)
	})
}

// Most are the limits that a Run may lower. 0 means no limit.
type Most struct {
	task.Limits
	Pending, Deadline time.Duration
}

// DefaultPending is the default of limits.pending.
const DefaultPending = 10 * time.Minute

// MostOf returns the limits of an Agent, its defaults included.
func MostOf(l v1alpha1.AgentLimits) Most {
	return Most{LimitsOf(l), cmp.Or(inDuration(l.Pending), DefaultPending), inDuration(l.Deadline)}
}

// MostOfWorkflow returns the limits of a Workflow.
func MostOfWorkflow(l *v1alpha1.WorkflowLimits) Most {
	if l == nil {
		l = &v1alpha1.WorkflowLimits{}
	}
	return Most{
		task.Limits{Steps: number(l.Steps), Tokens: tokens(l.Tokens), CostMicroUSD: microUSD(l.Cost), DurationSeconds: seconds(l.Duration)},
		cmp.Or(inDuration(l.Pending), DefaultPending), inDuration(l.Deadline),
	}
}

func inDuration(d *v1alpha1.Duration) time.Duration { return time.Duration(seconds(d)) * time.Second }

// MostOfRevision returns the limits of the Agent of a revision.
func MostOfRevision(v *Revision) Most {
	out := Most{Limits: v.Snapshot.Agent.Limits, Pending: DefaultPending}
	if d := v.Agent.Pending; d != nil {
		out.Pending = d.Duration
	}
	if d := v.Agent.Deadline; d != nil {
		out.Deadline = d.Duration
	}
	return out
}

// CheckLimits returns an error with both values if limits of a Run are above the limits of its Agent or
// Workflow, otherwise nil. The name of the Agent or Workflow is of, for example "Agent fixer".
func CheckLimits(l *v1alpha1.Limits, most Most, of string) *NotReadyError {
	if l == nil {
		return nil
	}
	inSeconds := func(n int64) string { return (time.Duration(n) * time.Second).String() }
	count := func(n int64) string { return strconv.FormatInt(n, 10) }
	var above []string
	for _, f := range []struct {
		name      string
		run, most int64
		shown     string
		show      func(int64) string
	}{
		{"steps", number(l.Steps), most.Steps, shown(l.Steps), count},
		{"modelCalls", number(l.ModelCalls), most.ModelCalls, shown(l.ModelCalls), count},
		{"toolCalls", number(l.ToolCalls), most.ToolCalls, shown(l.ToolCalls), count},
		{"tokens", tokens(l.Tokens), most.Tokens, shown(l.Tokens), count},
		{"cost", microUSD(l.Cost), most.CostMicroUSD, shown(l.Cost), task.Money},
		{"duration", seconds(l.Duration), most.DurationSeconds, shown(l.Duration), inSeconds},
		{"wait", seconds(l.Wait), most.WaitSeconds, shown(l.Wait), inSeconds},
		{"pending", seconds(l.Pending), int64(most.Pending.Seconds()), shown(l.Pending), inSeconds},
		{"deadline", seconds(l.Deadline), int64(most.Deadline.Seconds()), shown(l.Deadline), inSeconds},
	} {
		if f.most > 0 && f.run > f.most {
			above = append(above, fmt.Sprintf("spec.limits.%s is %s, and %s allows %s", f.name, f.shown, of, f.show(f.most)))
		}
	}
	if l.Depth != nil && int64(*l.Depth) > most.Depth {
		above = append(above, fmt.Sprintf("spec.limits.depth is %d, and %s allows %d", *l.Depth, of, most.Depth))
	}
	if own := outage(l.ModelOutage); own != nil && *own > int64(ModelOutage(most.Limits).Seconds()) {
		above = append(above, fmt.Sprintf("spec.limits.modelOutage is %s, and %s allows %s", *l.ModelOutage, of, ModelOutage(most.Limits)))
	}
	if len(above) == 0 {
		return nil
	}
	kind, _, _ := strings.Cut(of, " ")
	return &NotReadyError{v1alpha1.ReasonMisconfigured, fmt.Sprintf("%s. A Run only lowers limits: write at most that, or raise the limits of the %s", strings.Join(above, "; "), kind)}
}

// CheckCost returns an error if a Run limits its cost and one of its Models has no prices, otherwise nil: such a limit
// could not be enforced.
func CheckCost(l *v1alpha1.Limits, models []task.Model) *NotReadyError {
	if l == nil || microUSD(l.Cost) == 0 {
		return nil
	}
	for _, m := range models {
		if m.Prices == nil {
			return &NotReadyError{v1alpha1.ReasonMisconfigured, fmt.Sprintf("spec.limits.cost needs to know what Model %q costs. Set spec.prices of the Model, or remove limits.cost", m.Name)}
		}
	}
	return nil
}

// MaxToolsets is how many Toolsets the agents of one pod may name.
const MaxToolsets = 16

// checkToolsets checks the Toolsets that an Agent names.
func checkToolsets(agent *v1alpha1.Agent, o Objects) *NotReadyError {
	for _, name := range ToolsetsOf(agent.Spec) {
		t := o.Toolsets[name]
		if t == nil {
			return &NotReadyError{v1alpha1.ReasonNotFound, fmt.Sprintf("Toolset %q not found in namespace %s; create it, or remove it from spec.tools", name, agent.Namespace)}
		}
		if p := CheckToolset(t); p != nil {
			return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf("Toolset %q is not ready: %s", name, p.Message)}
		}
	}
	return nil
}

// checkSandbox finds tools that need a sandbox if there is none, and more Toolsets than one pod can have.
func checkSandbox(agent *v1alpha1.Agent, others []*v1alpha1.Agent, o Objects) *NotReadyError {
	if names := toolsetNames(agent, others); len(names) > MaxToolsets {
		return &NotReadyError{v1alpha1.ReasonTooLarge, fmt.Sprintf("It and the Agents that it may reach name %d Toolsets; at most %d fit one pod. Remove some from spec.tools", len(names), MaxToolsets)}
	}
	if agent.Spec.Sandbox != nil {
		return nil
	}
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		for _, t := range a.Spec.Tools {
			if needsSandbox(t, o) {
				return &NotReadyError{v1alpha1.ReasonSandboxMissing, fmt.Sprintf("%s of Agent %q needs a sandbox. Write sandbox: {image: debian:stable-slim}", sayTool(t), a.Name)}
			}
		}
	}
	return nil
}

func needsSandbox(t v1alpha1.Tool, o Objects) bool {
	if task.Builtins[string(t.Builtin)].Sandbox {
		return true
	}
	set := o.Toolsets[string(t.Toolset)]
	return set != nil && set.Spec.Stdio != nil && set.Spec.Stdio.RunIn == v1alpha1.RunInSandbox
}

func sayTool(t v1alpha1.Tool) string {
	if t.Toolset != "" {
		return "Toolset " + string(t.Toolset)
	}
	return "The tool " + string(t.Builtin)
}

// checkSkills checks that an Agent with skills can read them.
func checkSkills(spec v1alpha1.AgentSpec) *NotReadyError {
	if len(spec.Skills) == 0 || slices.ContainsFunc(spec.Tools, func(t v1alpha1.Tool) bool {
		return t.Builtin == v1alpha1.BuiltinFiles || task.Builtins[string(t.Builtin)].Sandbox
	}) {
		return nil
	}
	return &NotReadyError{v1alpha1.ReasonInvalid, "spec.skills need a tool that reads files: add {builtin: Files} to spec.tools, or remove the skills"}
}

// checkSameSkills checks that skills with the same name are the same: a pod has one folder for each.
func checkSameSkills(agent *v1alpha1.Agent, others []*v1alpha1.Agent) *NotReadyError {
	of, first := map[string]v1alpha1.Skill{}, map[string]string{}
	for _, a := range append([]*v1alpha1.Agent{agent}, others...) {
		for _, s := range a.Spec.Skills {
			if known, is := of[s.Name]; is && !reflect.DeepEqual(known, s) {
				return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf("Agent %q would work in the pod of this one, and its skill %s has another source than that of Agent %q; give one of the two another name", a.Name, s.Name, first[s.Name])}
			}
			of[s.Name], first[s.Name] = s, a.Name
		}
	}
	return nil
}

// checkPlace checks that an Agent that works in the pod of another has the same sandbox and files: a pod has one of
// each.
func checkPlace(agent, other *v1alpha1.Agent) *NotReadyError {
	refuse := func(what, remedy string) *NotReadyError {
		return &NotReadyError{v1alpha1.ReasonNotReady, fmt.Sprintf("Agent %q wants %s, but would work in the pod of this one; %s", other.Name, what, remedy)}
	}
	if s := other.Spec.Sandbox; s != nil && (agent.Spec.Sandbox == nil || agent.Spec.Sandbox.Image != s.Image) {
		return refuse("the sandbox image "+s.Image, "set sandbox.image here to the same, or leave its sandbox out")
	}
	if g := other.Spec.Workspace.Git; g != nil && (agent.Spec.Workspace.Git == nil || agent.Spec.Workspace.Git.URL != g.URL) {
		return refuse("the repository "+g.URL, "set workspace.git here to the same, or leave its workspace.git out")
	}
	if len(other.Spec.Workspace.Files) > 0 && agent.Name != other.Name {
		return refuse("files of its own in the workspace", "move its workspace.files here")
	}
	return nil
}
