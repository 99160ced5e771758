package engine

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A fakeAgents is the agents that may be called, by name.
type fakeAgents map[string]*Actor

func (f fakeAgents) actors(d Delegation) (*Actor, error) {
	a, ok := f[d.Agent]
	if !ok {
		return nil, fmt.Errorf("there is no agent %q", d.Agent)
	}
	return a, nil
}

// fakeAgent is an agent with a script and tools of its own.
func fakeAgent(name string, tools enginetest.Toolbox, turns ...turn) *Actor {
	return &Actor{
		Agent: task.Agent{Name: name, Instructions: "be " + name, ParallelTools: 4},
		Model: Model{Model: &fakeModel{turns: turns}, Name: "m-" + name},
		Tools: tools,
	}
}

func scriptOf(a *Actor) *fakeModel { return a.Model.Model.(*fakeModel) }

// An agent tool opens a session of the agent that its arguments name.
func agentTool() tool.Tool {
	t := newTool("agent", tool.Resumable, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		var in struct{ Agent, Prompt string }
		if err := json.Unmarshal(c.Args, &in); err != nil {
			return tool.Result{}, err
		}
		return c.Session.Delegate(ctx, tool.Delegation{Call: c.ID, Agent: in.Agent, Prompt: in.Prompt})
	})
	t.Timeout = tool.Unbounded
	return t
}

// askTool puts the question in its arguments to a person.
func askTool() tool.Tool {
	t := newTool("Ask", tool.Resumable, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		var in struct{ Q string }
		if err := json.Unmarshal(c.Args, &in); err != nil {
			return tool.Result{}, err
		}
		a, err := c.Session.Ask(ctx, tool.Question{Call: c.ID, Text: in.Q})
		switch {
		case err != nil:
			return tool.Result{}, err
		case a.Expired:
			return tool.Fail("nobody answered"), nil
		}
		return tool.Result{Text: a.By + " says " + a.Text}, nil
	})
	t.Timeout = tool.Unbounded
	return t
}

// last is the latest that was reported.
func (f *fakeReporter) last() task.Progress {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

// of are the events of a type.
func (f *fakeSink) of(e step.EventType) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var all []string
	for i, p := range f.all {
		if p.EventType() == e {
			all = append(all, f.messages[i])
		}
	}
	return all
}
