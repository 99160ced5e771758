package delegate

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Descriptions, for a model, of an agent in its own session and of one in a Run of its
// own.
var (
	//go:embed agent.md
	agentPage string
	//go:embed run.md
	runPage string
)

// maxName is how long the name of a tool may be, for every provider.
const maxName = 64

// Agent makes a tool that calls an agent. The tool has the given name or, if it is empty, the name of the agent, with
// characters replaced that providers refuse. Its arguments are the agent's input; without a schema, they are a prompt.
// An error means that the schema is invalid.
func Agent(a task.Agent, name string) (tool.Tool, error) {
	return worker(a, name, tool.Delegation{Agent: a.Name})
}

// Run makes a tool that calls an agent in a child Run, like Agent.
func Run(a task.Agent, name string) (tool.Tool, error) {
	if len(a.Name) > task.MaxAsker {
		return tool.Tool{}, fmt.Errorf("the name of the agent has %d bytes; at most %d can be asked for as a child Run: give it a shorter name", len(a.Name), task.MaxAsker)
	}
	return worker(a, name, tool.Delegation{Agent: a.Name, Run: true})
}

// worker makes the tool that delegates to an agent. d is the delegation without its input.
func worker(a task.Agent, name string, d tool.Delegation) (tool.Tool, error) {
	if name == "" {
		name = a.Name
	}
	description := strings.TrimSpace(a.Description)
	if description == "" {
		description = fmt.Sprintf("Has the agent %s do a piece of work.", a.Name)
	}
	page := agentPage
	if d.Run {
		page = runPage
	}
	spec := waiting(safe(name), description+"\n\n"+strings.TrimSpace(page))
	if len(a.InputSchema) == 0 {
		return tool.Typed(spec, func(ctx context.Context, call tool.Call, in promptIn) (tool.Result, error) {
			d := d
			d.Prompt, d.Input = in.Prompt, call.Args
			return delegate(ctx, call, d)
		}), nil
	}
	if err := checkInput(a.InputSchema); err != nil {
		return tool.Tool{}, fmt.Errorf("using the input schema of the agent %s: %w", a.Name, err)
	}
	spec.Input = a.InputSchema
	// Policies and approvers see the defaults that the agent is given.
	fill := func(_ context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
		return schema.Fill(a.InputSchema, args), nil
	}
	made := tool.Typed(spec, func(ctx context.Context, call tool.Call, in json.RawMessage) (tool.Result, error) {
		d := d
		d.Input = schema.Fill(a.InputSchema, in)
		d.Prompt = prompt(d.Input)
		return delegate(ctx, call, d)
	})
	made.Canonicalize = fill
	return made, nil
}

// checkInput returns an error unless a schema is valid and of type object, as the arguments of a tool require.
func checkInput(raw json.RawMessage) error {
	if err := schema.Check(raw); err != nil {
		return err
	}
	var top struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &top); err != nil || top.Type != "object" {
		return &schema.Error{Path: "type", Problem: `must be "object": arguments have names`}
	}
	return nil
}

// prompt returns the first message to an agent: the argument of that name, or otherwise all arguments.
func prompt(args json.RawMessage) string {
	var in struct {
		Prompt json.RawMessage `json:"prompt"`
	}
	var text string
	if json.Unmarshal(args, &in) == nil && json.Unmarshal(in.Prompt, &text) == nil && strings.TrimSpace(text) != "" {
		return text
	}
	return compact(args)
}

// compact returns JSON without the space between its values.
func compact(raw json.RawMessage) string {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return string(raw)
	}
	return out.String()
}

// safe replaces characters that some providers refuse in names.
func safe(name string) string {
	name = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_':
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxName)]
}
