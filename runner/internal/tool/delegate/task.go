package delegate

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// NameTask is the name of the tool that opens a fresh session.
const NameTask = "Task"

//go:embed task.md
var taskPage string

type promptIn struct {
	Prompt string `json:"prompt" jsonschema:"the whole task, with everything that is needed for it"`
}

type taskIn struct {
	promptIn
	Agent string `json:"agent,omitempty" jsonschema:"who does it; default: a fresh session of your own kind"`
}

// Task makes the tool that hands work to a fresh session: of the same agent, or
// of one of those given.
func Task(agents []task.Agent) tool.Tool {
	spec := waiting(NameTask, strings.TrimSpace(taskPage)+listed(agents))
	if len(agents) == 0 {
		return tool.Typed(spec, func(ctx context.Context, call tool.Call, in promptIn) (tool.Result, error) {
			return hand(ctx, call, tool.Delegation{Prompt: in.Prompt})
		})
	}
	return tool.Typed(spec, func(ctx context.Context, call tool.Call, in taskIn) (tool.Result, error) {
		if in.Agent != "" && !slices.ContainsFunc(agents, func(a task.Agent) bool { return a.Name == in.Agent }) {
			return unknown(in.Agent, agents), nil
		}
		return hand(ctx, call, tool.Delegation{Agent: in.Agent, Prompt: in.Prompt})
	})
}

// waiting is the Spec of a tool that waits for another session.
func waiting(name, description string) tool.Spec {
	return tool.Spec{
		Name: name, Description: description,
		Effect: tool.Resumable, Concurrency: tool.Parallel, Timeout: tool.Unbounded,
	}
}

// listed tells who there is.
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
	}
	return list.String()
}

func unknown(name string, agents []task.Agent) tool.Result {
	names := make([]string, len(agents))
	for i, a := range agents {
		names[i] = a.Name
	}
	return tool.Fail(fmt.Sprintf("There is no agent %q to hand work to.", task.Cut(name, task.MaxSummary)),
		"There are: "+strings.Join(names, ", ")+".", "Leave agent out to hand it to a fresh session of your own kind.")
}

// hand has a session of its own do a piece of work, and waits for the result.
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

// summary says in a line what was handed to whom.
func summary(d tool.Delegation) string {
	line := strings.Join(strings.Fields(d.Prompt), " ")
	if d.Agent != "" {
		line = d.Agent + ": " + line
	}
	return task.Cut(line, task.MaxSummary)
}
