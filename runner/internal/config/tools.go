package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/telemetry"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/control"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/delegate"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/request"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// toolbox gathers the tools of an agent and of its layers, and the tools that every agent has. It also returns the
// names of the tools of each entry.
func (b *builder) toolbox(agent task.Agent, c sessionOptions) (*toolbox.Toolbox, [][]string, error) {
	tools, err := ending(agent)
	if err != nil {
		return nil, nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	tools = asNamedBefore(tools, b.Snapshot.Version)
	called := make([][]string, len(agent.Tools))
	for i, entry := range agent.Tools {
		made, err := b.entry(agent, i, c)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range made {
			called[i] = append(called[i], t.Name)
		}
		tools = append(tools, within(made, bound(entry))...)
	}
	for _, l := range c.custom.layers {
		tools = append(tools, l.Tools...)
	}
	if b.models.specs[c.models[0]].RequestRepair != task.RepairDisabled {
		tools = withPortableSchemas(tools)
	}
	box, err := toolbox.New(tools...)
	if err != nil {
		return nil, nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	return box, called, nil
}

// entry makes the tools of the entry at an index.
func (b *builder) entry(agent task.Agent, index int, c sessionOptions) ([]tool.Tool, error) {
	entry := agent.Tools[index]
	if entry.Toolset != "" {
		made, err := b.toolset(entry)
		if err != nil {
			return nil, misconfigured("Agent %s: %w", agent.Name, err)
		}
		return made, nil
	}
	made, what := c.custom.tools[index], entry.Custom
	if entry.Custom == "" {
		factory, name, err := builtinOf(agent, entry)
		if err != nil {
			return nil, err
		}
		what = name
		made, err = factory(builtinSpec{
			ToolSpec: b.toolSpec(agent, entry),
			agents:   b.agents, files: c.files, memories: b.places.memories, sessions: b.sessions, sandbox: b.sandboxTools, version: b.Snapshot.Version,
		})
		if err != nil {
			return nil, misconfigured("Agent %s: making the tools of %s: %w", agent.Name, what, err)
		}
	}
	made, err := choose(what, "", made, entry)
	if err != nil {
		return nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	if entry.Builtin != "" {
		return asNamedBefore(made, b.Snapshot.Version), nil
	}
	if entry.Name == "" {
		return made, nil
	}
	if len(made) != 1 {
		return nil, misconfigured("Agent %s: %s is %d tools, which cannot share the name %s; remove name", agent.Name, what, len(made), entry.Name)
	}
	made[0].Name = entry.Name
	return made, nil
}

// builtinOf returns the factory of an entry for built-in tools or an agent as a tool, and how messages name the entry.
func builtinOf(agent task.Agent, entry task.Tool) (builtinFactory, string, error) {
	switch {
	case entry.Agent != "" && entry.Mode == task.ModeRun:
		return runTool, "the agent " + entry.Agent, nil
	case entry.Agent != "":
		return agentTool, "the agent " + entry.Agent, nil
	}
	if f, ok := builtins[entry.Builtin]; ok {
		return f, entry.Builtin, nil
	}
	return nil, "", misconfigured("Agent %s: this runner has no builtin %q; it has %s", agent.Name, entry.Builtin, names(builtins))
}

// agentTool makes a tool that calls another agent.
func agentTool(s builtinSpec) ([]tool.Tool, error) {
	other, ok := s.agents[s.Entry.Agent]
	if !ok {
		return nil, misconfigured("it is not among the agents of the Run")
	}
	t, err := delegate.Agent(other, cmp.Or(s.Entry.Name, other.Name))
	return []tool.Tool{t}, err
}

// runTool makes a tool that calls an agent in a child Run. The entry describes that agent.
func runTool(s builtinSpec) ([]tool.Tool, error) {
	e := s.Entry
	t, err := delegate.Run(task.Agent{Name: e.Agent, Description: e.Description, InputSchema: e.InputSchema}, cmp.Or(e.Name, e.Agent))
	return []tool.Tool{t}, err
}

// ending returns the tools that end a Run, which every Agent has.
func ending(agent task.Agent) ([]tool.Tool, error) {
	finish := control.Finish()
	if len(agent.OutputSchema) > 0 {
		var err error
		if finish, err = control.FinishWith(agent.OutputSchema); err != nil {
			return nil, err
		}
	}
	return []tool.Tool{finish, control.Reject()}, nil
}

// asNamedBefore renames tools as an older version of the Snapshot names them.
func asNamedBefore(tools []tool.Tool, version int) []tool.Tool {
	for i, t := range tools {
		tools[i].Name = task.ToolName(t.Name, version)
	}
	return tools
}

// bound returns the timeout that an Agent sets for the tools of an entry. Tools of the sandbox apply the timeout
// themselves, and a child Run has its own limits.
func bound(entry task.Tool) time.Duration {
	if task.Builtins[entry.Builtin].Sandbox || entry.Mode == task.ModeRun {
		return 0
	}
	return seconds(entry.TimeoutSeconds)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// within sets the timeout of tools; 0 keeps their own.
func within(tools []tool.Tool, timeout time.Duration) []tool.Tool {
	if timeout == 0 {
		return tools
	}
	all := slices.Clone(tools)
	for i := range all {
		all[i].Timeout = timeout
	}
	return all
}

// requests makes the tools of a Toolset with requests to an HTTP API.
func (b *builder) requests(set task.Toolset) ([]tool.Tool, error) {
	made, err := request.New(set, request.Options{Key: b.readKey, Learn: b.Learn, RunUID: b.Task.Run.UID, Traceparent: telemetry.Traceparent(b.Task), Now: b.Now})
	if err != nil {
		return nil, misconfigured("Toolset %s: %w", set.Name, err)
	}
	return within(made, seconds(set.TimeoutSeconds)), nil
}

// Notes describe unavailable servers to the model.
func (st *SandboxTools) Notes() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(st.servers)) {
		if note := st.servers[name].Note(); note != "" {
			out = append(out, note)
		}
	}
	return out
}

// Unavailable returns the optional servers that could not be reached.
func (st *SandboxTools) Unavailable() []journal.Remote {
	var out []journal.Remote
	for _, name := range slices.Sorted(maps.Keys(st.servers)) {
		if why := st.servers[name].Absent(); why != nil {
			out = append(out, journal.Remote{Name: "toolset " + name, Field: why.Field + " of Toolset " + name, Unreachable: why.Reason()})
		}
	}
	return out
}

// maxInstructions bounds the instructions of all servers that an agent reads, in bytes.
const maxInstructions = 8 << 10

// instructions returns the instructions of the servers of an agent's Toolsets, in the order of their names. They are
// part of every request to a model.
func (st *SandboxTools) instructions(agent task.Agent) string {
	var used []string
	for _, entry := range agent.Tools {
		if _, is := st.servers[entry.Toolset]; is {
			used = append(used, entry.Toolset)
		}
	}
	slices.Sort(used)
	var all []string
	room := maxInstructions
	for _, name := range slices.Compact(used) {
		text := st.servers[name].Instructions(room)
		if text != "" {
			all = append(all, text)
			room -= len(text)
		}
	}
	return paragraphs(all...)
}
