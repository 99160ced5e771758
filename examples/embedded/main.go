// Command embedded answers a question about the stock of a shop with an agent in this program.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/deckhand-dev/deckhand/runner"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	model := task.Model{Provider: "OpenAI", Model: "gpt-5-mini"}
	err := answer(ctx, os.Stdout, model, strings.Join(os.Args[1:], " "))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// answer writes the tools that the agent calls, and then its answer.
func answer(ctx context.Context, out io.Writer, model task.Model, question string) error {
	agent := runner.New(runner.Agent{
		Instructions: "You answer questions about the stock of a shop. Look up each number.",
		Model:        model,
		Key:          func() (string, error) { return os.Getenv("OPENAI_API_KEY"), nil },
		Limits:       task.Limits{Steps: 10, DurationSeconds: 60},
	}, runner.WithTool("Stock", newStock))

	run := agent.Run(ctx, question)
	for event := range run.Events() {
		if call, ok := event.Payload.(events.CallStarted); ok {
			fmt.Fprintf(out, "… %s %s\n", call.Name, call.Args)
		}
	}
	result, err := run.Result()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s (%d tokens)\n", result.Text, result.Usage.TotalTokens)
	return err
}

// stockIn are the arguments of the tool. Its JSON Schema is generated from them.
type stockIn struct {
	Item string `json:"item" jsonschema:"the name of the item"`
}

var stock = map[string]int{"lamp": 12, "chair": 0}

// newStock returns the tool that looks up an item.
func newStock(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
	return []tool.Tool{tool.Typed(tool.Spec{
		Name: "Stock", Description: "Returns how many of an item there are.",
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}, func(_ context.Context, _ tool.Call, in stockIn) (tool.Result, error) {
		n, ok := stock[in.Item]
		if !ok {
			return tool.Fail("there is no such item", "Use the singular, such as lamp."), nil
		}
		return tool.Result{Text: fmt.Sprint(n)}, nil
	})}, nil
}
