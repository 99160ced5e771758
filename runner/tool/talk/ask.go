package talk

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed ask.md
var askPage string

type askIn struct {
	Question string   `json:"question" jsonschema:"what to ask, with what is needed to answer it"`
	Options  []string `json:"options,omitempty" jsonschema:"answers to choose from"`
}

const unanswered = "Nobody answered in time. Go on with what is most sensible without an answer, and say in the result what you assumed."

// Ask puts a question to a person and waits for the answer.
func Ask() tool.Tool {
	spec := tool.Spec{
		Tool:   step.Tool{Name: NameAsk, Description: strings.TrimSpace(askPage)},
		Effect: tool.Resumable, Concurrency: tool.Parallel, Timeout: tool.Unbounded,
	}
	return tool.Typed(spec, func(ctx context.Context, call tool.Call, in askIn) (tool.Result, error) {
		text := question(in)
		switch {
		case strings.TrimSpace(in.Question) == "":
			return tool.Fail("The question is empty.", "Write what you want to know."), nil
		case len(text) > task.MaxMessage: // people would be shown a part of it
			return tool.Fail(fmt.Sprintf("The question has %d bytes with its options; at most %d are shown.", len(text), task.MaxMessage),
				"Ask in fewer words, and put the details into a file that you name."), nil
		}
		answer, err := call.Session.Ask(ctx, tool.Question{Call: call.ID, Text: text})
		if err != nil {
			return tool.Result{}, err
		}
		return answered(answer), nil
	})
}

// question is what a person reads.
func question(in askIn) string {
	var text strings.Builder
	text.WriteString(strings.TrimSpace(in.Question))
	for i, option := range in.Options {
		fmt.Fprintf(&text, "\n%d. %s", i+1, strings.TrimSpace(option))
	}
	return text.String()
}

// answered is what the model reads of an answer.
func answered(a tool.Answer) tool.Result {
	by := a.By
	if by == "" {
		by = "somebody"
	}
	switch {
	case a.Expired:
		return tool.Result{Text: unanswered, Summary: "nobody answered"}
	case strings.TrimSpace(a.Text) == "":
		return tool.Result{Text: fmt.Sprintf("The question was answered by %s, without a word.", by), Summary: "answered by " + by}
	}
	return tool.Result{Text: fmt.Sprintf("Answer by %s:\n%s", by, a.Text), Summary: "answered by " + by}
}
