package config

import (
	"cmp"
	"context"
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/control"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/delegate"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// toolbox gathers the tools of an agent, those that its layers bring, and those
// that every agent has. It returns with them the names of the tools of each entry.
func (b *builder) toolbox(ctx context.Context, agent task.Agent, of *files.Toolset, layers []middleware.Layer) (*tool.Registry, [][]string, error) {
	tools, err := ending(agent)
	if err != nil {
		return nil, nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	called := make([][]string, len(agent.Tools))
	for i, entry := range agent.Tools {
		made, err := b.entry(ctx, agent, entry, of)
		if err != nil {
			return nil, nil, err
		}
		for _, t := range made {
			called[i] = append(called[i], t.Spec().Name)
		}
		tools = append(tools, within(made, bound(entry))...)
	}
	for _, l := range layers {
		tools = append(tools, l.Tools...)
	}
	box, err := tool.NewRegistry(tools...)
	if err != nil {
		return nil, nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	return box, called, nil
}

// entry makes the tools of one entry.
func (b *builder) entry(ctx context.Context, agent task.Agent, entry task.Tool, of *files.Toolset) ([]tool.Tool, error) {
	if entry.Toolset != "" {
		made, err := b.toolset(entry)
		if err != nil {
			return nil, misconfigured("Agent %s: %w", agent.Name, err)
		}
		return made, nil
	}
	factory, what, err := b.factory(ctx, agent, entry)
	if err != nil {
		return nil, err
	}
	made, err := factory(builtinSpec{
		ToolSpec: registry.ToolSpec{Entry: entry, Agent: agent, Run: b.Task.Run, User: b.Task.User, Key: b.key(entry.SecretKey)},
		agents:   b.agents, files: of, memories: b.places.memories, sessions: b.sessions, sandbox: b.hands,
	})
	if err != nil {
		return nil, misconfigured("Agent %s: making the tools of %s: %w", agent.Name, what, err)
	}
	if made, err = choose(what, "", made, entry); err != nil {
		return nil, misconfigured("Agent %s: %w", agent.Name, err)
	}
	if entry.Name == "" {
		return made, nil
	}
	if len(made) != 1 {
		return nil, misconfigured("Agent %s: %s is %d tools, which cannot share the name %s; remove name", agent.Name, what, len(made), entry.Name)
	}
	return []tool.Tool{renamed{made[0], entry.Name}}, nil
}

// factory returns the factory of the tools of an entry, and what a message calls them.
func (b *builder) factory(ctx context.Context, agent task.Agent, entry task.Tool) (builtinFactory, string, error) {
	switch {
	case entry.Agent != "" && entry.Mode == task.ModeRun:
		return runTool, "the agent " + entry.Agent, nil
	case entry.Agent != "":
		return agentTool, "the agent " + entry.Agent, nil
	case entry.Custom != "":
		if f, ok := b.registry.customs[entry.Custom]; ok {
			return func(s builtinSpec) ([]tool.Tool, error) { return f(ctx, s.ToolSpec) }, entry.Custom, nil
		}
		return nil, "", misconfigured("Agent %s: this runner has no custom tool %q; it has %s; set podTemplate.runnerImage to a runner that was built with it",
			agent.Name, entry.Custom, cmp.Or(names(b.registry.customs), "none"))
	}
	if f, ok := builtins[entry.Builtin]; ok {
		return f, entry.Builtin, nil
	}
	return nil, "", misconfigured("Agent %s: this runner has no builtin %q; it has %s", agent.Name, entry.Builtin, names(builtins))
}

// agentTool makes a tool of another agent.
func agentTool(s builtinSpec) ([]tool.Tool, error) {
	other, ok := s.agents[s.Entry.Agent]
	if !ok {
		return nil, misconfigured("it is not among the agents of the Run")
	}
	t, err := delegate.Agent(other, cmp.Or(s.Entry.Name, other.Name))
	return []tool.Tool{t}, err
}

// runTool makes a tool of an agent that works in a child Run: what is known of it
// stands in the entry.
func runTool(s builtinSpec) ([]tool.Tool, error) {
	e := s.Entry
	t, err := delegate.Run(task.Agent{Name: e.Agent, Description: e.Description, InputSchema: e.InputSchema}, cmp.Or(e.Name, e.Agent))
	return []tool.Tool{t}, err
}

// ending are the tools that end a Run; every Agent has them.
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

// A renamed tool has the name that the Agent gave it.
type renamed struct {
	tool.Tool
	name string
}

// Spec implements [tool.Tool].
func (r renamed) Spec() tool.Spec {
	s := r.Tool.Spec()
	s.Name = r.name
	return s
}

// EffectOf implements [tool.Classifier] for a tool that does.
func (r renamed) EffectOf(args json.RawMessage) tool.Effect { return tool.EffectOf(r.Tool, args) }

// Canonical implements [tool.Canonicalizer] for a tool that does.
func (r renamed) Canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	return tool.Canonical(ctx, r.Tool, args)
}

// A bounded tool has the timeout that the Agent gave it.
type bounded struct {
	tool.Tool
	timeout time.Duration
}

// Spec implements [tool.Tool].
func (b bounded) Spec() tool.Spec {
	s := b.Tool.Spec()
	s.Timeout = b.timeout
	return s
}

// EffectOf implements [tool.Classifier] for a tool that does.
func (b bounded) EffectOf(args json.RawMessage) tool.Effect { return tool.EffectOf(b.Tool, args) }

// Canonical implements [tool.Canonicalizer] for a tool that does.
func (b bounded) Canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	return tool.Canonical(ctx, b.Tool, args)
}

// bound is the timeout that an Agent gives the tools of an entry; those of the
// sandbox bound their commands themselves, and a child Run has limits of its own.
func bound(entry task.Tool) time.Duration {
	if entry.Builtin == builtinShell || entry.Builtin == builtinPython || entry.Mode == task.ModeRun {
		return 0
	}
	return seconds(entry.TimeoutSeconds)
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// within bounds tools; 0 leaves each its own bound.
func within(tools []tool.Tool, timeout time.Duration) []tool.Tool {
	if timeout == 0 {
		return tools
	}
	all := make([]tool.Tool, len(tools))
	for i, t := range tools {
		all[i] = bounded{Tool: t, timeout: timeout}
	}
	return all
}
