// Package delegate has the tools with which an agent delegates to others: Task, which opens a new session, and agents
// as tools with their own names. An agent works in the same pod, or in a child Run ([Run]). The session executes
// delegations ([tool.Session]); this package defines what a model reads about them. The other agent knows only its
// input, and only its result is returned. A call that a crash interrupted is repeated and continues the session that it
// had opened.
package delegate

import (
	"bytes"
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

// NameTask is the name of the tool that opens a fresh session.
const NameTask = "Task"

//go:embed task.md
var taskPage string

// The arguments of Task as a model reads them. They include agent if there are other agents, and input if an agent
// declares an input.
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

// An object has the members of a JSON object, not decoded.
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
	made := tool.Typed(spec, func(ctx context.Context, call tool.Call, _ In) (tool.Result, error) {
		var in taskIn
		if err := json.Unmarshal(call.Args, &in); err != nil {
			return tool.Result{}, fmt.Errorf("reading arguments that fit their schema: %w", err)
		}
		return d.call(ctx, call, in)
	})
	made.Canonicalize = d.canonical
	return made
}

// hasInput reports whether an agent declares an input.
func hasInput(a task.Agent) bool { return len(a.InputSchema) > 0 }

// A delegator hands work to agents.
type delegator struct {
	own    task.Agent
	others []task.Agent
}

// agent returns the agent of a name, and whether there is one; the empty name is its own.
func (d delegator) agent(name string) (task.Agent, bool) {
	if name == "" {
		return d.own, true
	}
	i := slices.IndexFunc(d.others, func(a task.Agent) bool { return a.Name == name })
	if i < 0 {
		return task.Agent{}, false
	}
	return d.others[i], true
}

// canonical fills the input with the defaults of its schema: policies and approvers see all values that the agent is
// given, and the prompt once. Arguments that do not fit are left for the call, which says what is wrong.
func (d delegator) canonical(_ context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in taskIn
	var all object
	if json.Unmarshal(args, &in) != nil || json.Unmarshal(args, &all) != nil {
		return args, nil
	}
	agent, known := d.agent(in.Agent)
	if !known || !hasInput(agent) {
		return args, nil
	}
	values, err := input(agent.InputSchema, in)
	if _, given := in.Input["prompt"]; !given {
		delete(values, "prompt")
	}
	if err != nil || maps.EqualFunc(values, in.Input, equal) {
		return args, nil
	}
	all["input"], _ = json.Marshal(values) // JSON already: cannot fail
	filled, err := json.Marshal(all)
	if err != nil {
		return args, nil
	}
	return filled, nil
}

// call has the agent of a call do its work.
func (d delegator) call(ctx context.Context, call tool.Call, in taskIn) (tool.Result, error) {
	agent, known := d.agent(in.Agent)
	if !known {
		return unknown(in.Agent, d.others), nil
	}
	asked := tool.Delegation{Agent: in.Agent, Prompt: in.Prompt}
	if !hasInput(agent) {
		if len(in.Input) > 0 {
			return tool.Fail(fmt.Sprintf("The agent %s takes no input.", agent.Name),
				"Leave input out, and write all that the agent needs into prompt."), nil
		}
		return delegate(ctx, call, asked)
	}
	values, err := input(agent.InputSchema, in)
	if err != nil && len(in.Input) == 0 && in.Agent == "" {
		return delegate(ctx, call, asked) // its own kind may need no more than the prompt
	}
	if err != nil {
		return tool.Fail(fmt.Sprintf("The input of the agent %s does not fit: %s.", agent.Name, strings.TrimSuffix(err.Error(), ".")),
			"Write the input that the description of this tool names."), nil
	}
	if asked.Input, err = json.Marshal(values); err != nil {
		return tool.Result{}, fmt.Errorf("writing the input: %w", err)
	}
	return delegate(ctx, call, asked)
}

// input returns the values of a call with the defaults of a schema, and with the prompt if the
// schema allows one. The error says which value is missing or wrong.
func input(of json.RawMessage, in taskIn) (object, error) {
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
	if err := schema.Validate(of, raw); err != nil {
		return nil, err //nolint:wrapcheck // the model reads it as it is
	}
	var filled object
	if err := json.Unmarshal(raw, &filled); err != nil {
		return nil, fmt.Errorf("reading the filled input: %w", err)
	}
	return filled, nil
}

func equal(a, b json.RawMessage) bool { return bytes.Equal(a, b) }

// allowsPrompt reports whether a schema declares a prompt, or allows what it does not declare.
func allowsPrompt(raw json.RawMessage) bool {
	var s struct {
		Properties           object          `json:"properties"`
		AdditionalProperties json.RawMessage `json:"additionalProperties"`
	}
	err := json.Unmarshal(raw, &s)
	return err == nil && (s.Properties["prompt"] != nil || string(s.AdditionalProperties) != "false")
}

// waiting returns the Spec of a tool that waits for another session.
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

// delegate delegates to a session and waits for the result.
func delegate(ctx context.Context, call tool.Call, d tool.Delegation) (tool.Result, error) {
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
