package delegate

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// NameTask is the name of the tool that opens a fresh session.
const NameTask = "Task"

//go:embed task.md
var taskPage string

// The arguments of Task, as a model reads them: agent is among them if there are others, input
// if an agent declares one.
type (
	promptIn struct {
		Prompt string `json:"prompt" jsonschema:"the whole task, with everything that is needed for it"`
	}
	agentIn struct {
		promptIn
		Agent string `json:"agent,omitempty" jsonschema:"who does it; default: a fresh session of your own kind"`
	}
	inputIn struct {
		promptIn
		Input map[string]any `json:"input,omitempty" jsonschema:"the values that the agent declares"`
	}
	agentInputIn struct {
		agentIn
		Input map[string]any `json:"input,omitempty" jsonschema:"the values that the agent declares"`
	}
)

// An object is the members of a JSON object, as they are written.
type object map[string]json.RawMessage

// taskIn has all arguments of Task.
type taskIn struct {
	Prompt string `json:"prompt"`
	Agent  string `json:"agent"`
	Input  object `json:"input"`
}

// Task makes the tool that hands work to a fresh session: of the same agent, which
// is own, or of one of others.
func Task(own task.Agent, others []task.Agent) tool.Tool {
	d := delegator{own: own, others: others}
	spec := waiting(NameTask, strings.TrimSpace(taskPage)+listed(others)+ofOwnKind(own))
	hasInput := hasInput(own) || slices.ContainsFunc(others, hasInput)
	switch {
	case hasInput && len(others) > 0:
		return taskOf[agentInputIn](spec, d)
	case hasInput:
		return taskOf[inputIn](spec, d)
	case len(others) > 0:
		return taskOf[agentIn](spec, d)
	}
	return taskOf[promptIn](spec, d)
}

// taskOf makes a tool with the arguments In.
func taskOf[In any](spec tool.Spec, d delegator) tool.Tool {
	return tool.Typed(spec, func(ctx context.Context, call tool.Call, _ In) (tool.Result, error) {
		var in taskIn
		if err := json.Unmarshal(call.Args, &in); err != nil {
			return tool.Result{}, fmt.Errorf("reading arguments that fit their schema: %w", err)
		}
		return d.hand(ctx, call, in)
	})
}

// hasInput reports whether an agent declares an input.
func hasInput(a task.Agent) bool { return len(a.InputSchema) > 0 }

// A delegator hands work to agents.
type delegator struct {
	own    task.Agent
	others []task.Agent
}

// hand has the agent of a call do its work.
func (t delegator) hand(ctx context.Context, call tool.Call, in taskIn) (tool.Result, error) {
	agent := t.own
	if in.Agent != "" {
		i := slices.IndexFunc(t.others, func(a task.Agent) bool { return a.Name == in.Agent })
		if i < 0 {
			return unknown(in.Agent, t.others), nil
		}
		agent = t.others[i]
	}
	d := tool.Delegation{Agent: in.Agent, Prompt: in.Prompt}
	switch {
	case in.Input != nil && !hasInput(agent):
		return tool.Fail(fmt.Sprintf("The agent %s takes no input.", agent.Name),
			"Leave input out, and write all that the agent needs into prompt."), nil
	case in.Input == nil && (in.Agent == "" || !hasInput(agent)):
		return hand(ctx, call, d) // its own kind may need no more than the prompt
	}
	var err error
	if d.Input, err = input(agent.InputSchema, in); err != nil {
		return tool.Fail(fmt.Sprintf("The input of the agent %s does not fit: %s.", agent.Name, strings.TrimSuffix(err.Error(), ".")),
			"Write the input that the description of this tool names."), nil
	}
	return hand(ctx, call, d)
}

// input returns the values of a call with the defaults of a schema, and with the prompt if the
// schema allows one. The error says which value is missing or wrong.
func input(of json.RawMessage, in taskIn) (json.RawMessage, error) {
	values := object{}
	maps.Copy(values, in.Input)
	if _, given := values["prompt"]; !given && allowsPrompt(of) {
		values["prompt"], _ = json.Marshal(in.Prompt) // a string: cannot fail
	}
	raw, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("writing the input: %w", err)
	}
	raw = schema.Fill(of, raw)
	return raw, schema.Validate(of, raw) //nolint:wrapcheck // the model reads it as it is
}

// allowsPrompt reports whether a schema declares a prompt, or allows what it does not declare.
func allowsPrompt(raw json.RawMessage) bool {
	var s struct {
		Properties           object          `json:"properties"`
		AdditionalProperties json.RawMessage `json:"additionalProperties"`
	}
	err := json.Unmarshal(raw, &s)
	return err == nil && (s.Properties["prompt"] != nil || string(s.AdditionalProperties) != "false")
}

// waiting is the Spec of a tool that waits for another session.
func waiting(name, description string) tool.Spec {
	return tool.Spec{
		Name: name, Description: description,
		Effect: tool.Resumable, Concurrency: tool.Parallel, Timeout: tool.Unbounded,
	}
}

// listed returns the names of agents with what each does and takes.
func listed(agents []task.Agent) string {
	var list strings.Builder
	for i, a := range agents {
		if i == 0 {
			list.WriteString("\n\nAgents:")
		}
		list.WriteString("\n- " + a.Name)
		if about := strings.Join(strings.Fields(a.Description), " "); about != "" {
			list.WriteString(": " + about)
		}
		if hasInput(a) {
			list.WriteString("\n  input: " + compact(a.InputSchema))
		}
	}
	return list.String()
}

// ofOwnKind returns what a session of the same agent takes.
func ofOwnKind(own task.Agent) string {
	if !hasInput(own) {
		return ""
	}
	return "\n\nInput of your own kind: " + compact(own.InputSchema)
}

func unknown(name string, agents []task.Agent) tool.Result {
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = a.Name
	}
	return tool.Fail(fmt.Sprintf("There is no agent %q to hand work to.", task.Cut(name, task.MaxSummary)),
		"There are: "+strings.Join(names, ", ")+".", "Leave agent out to hand it to a fresh session of your own kind.")
}

// hand delegates to a session and waits for the result.
func hand(ctx context.Context, call tool.Call, d tool.Delegation) (tool.Result, error) {
	if strings.TrimSpace(d.Prompt) == "" {
		return tool.Fail("The prompt is empty.", "Write the whole task into it: the other session knows nothing else."), nil
	}
	d.Call = call.ID
	result, err := call.Session.Delegate(ctx, d)
	if err != nil {
		return tool.Result{}, err
	}
	if result.Summary == "" {
		result.Summary = summary(d)
	}
	return result, nil
}

// summary describes the delegation in a line.
func summary(d tool.Delegation) string {
	line := strings.Join(strings.Fields(d.Prompt), " ")
	if d.Agent != "" {
		line = d.Agent + ": " + line
	}
	return task.Cut(line, task.MaxSummary)
}
