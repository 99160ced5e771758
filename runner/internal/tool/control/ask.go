// Package control has the tools with which a model controls the session: think for itself, finish and reject for the
// loop, ask for users.
package control

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed ask.md
var askPage string

type askIn struct {
	Question string         `json:"question" jsonschema:"what to ask, with what is needed to answer it"`
	Options  []string       `json:"options,omitempty" jsonschema:"answers to suggest"`
	Schema   map[string]any `json:"schema,omitempty" jsonschema:"the JSON Schema, of type object, that the answer must fit; leave it out for an answer in words"`
}

const unanswered = "No user answered in time. Go on with what is most sensible without an answer, and say in the result what you assumed."

// Ask returns the tool that asks the user a question and waits for the answer.
func Ask() tool.Tool {
	spec := tool.Spec{
		Name: NameAsk, Description: strings.TrimSpace(askPage),
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
		form, wrong := formOf(in.Schema)
		if wrong != "" {
			return tool.Fail("The schema "+wrong, "Write a schema as in the description of this tool, or leave it out and read the answer in words."), nil
		}
		return put(ctx, call, tool.Question{Call: call.ID, Text: text, Schema: form})
	})
}

// put asks the question. If it has a form, only values that match the form are accepted as answer.
func put(ctx context.Context, call tool.Call, q tool.Question) (tool.Result, error) {
	if q.Schema != nil {
		q.Fits = func(answer string) error { return schema.Validate(q.Schema, json.RawMessage(answer)) }
	}
	answer, err := call.Session.Ask(ctx, q)
	if err != nil {
		return tool.Result{}, err
	}
	res := answered(answer)
	if q.Schema != nil && !answer.Expired {
		res.Text = answer.Text
	}
	return res, nil
}

// formOf returns the schema of an answer as users see it, or what is wrong with the schema.
func formOf(in map[string]any) (form json.RawMessage, wrong string) {
	if in == nil {
		return nil, ""
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(in); err != nil {
		return nil, "cannot be written: " + err.Error()
	}
	form = bytes.TrimSpace(b.Bytes())
	if len(form) > task.MaxSchema {
		return nil, fmt.Sprintf("has %d bytes; at most %d are shown.", len(form), task.MaxSchema)
	}
	if err := schema.Check(form); err != nil {
		return nil, "cannot be used: " + err.Error() + "."
	}
	if bytes.ContainsFunc(form, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, "has characters that cannot be seen."
	}
	return form, ""
}

// question returns the text for the user.
func question(in askIn) string {
	var text strings.Builder
	text.WriteString(strings.TrimSpace(in.Question))
	for i, option := range in.Options {
		fmt.Fprintf(&text, "\n%d. %s", i+1, strings.TrimSpace(option))
	}
	return text.String()
}

// answered returns the answer for the model.
func answered(a tool.Answer) tool.Result {
	by := a.By
	if by == "" {
		by = "a user"
	}
	switch {
	case a.Expired:
		return tool.Result{Text: unanswered, Failed: true, Summary: "not answered in time"}
	case strings.TrimSpace(a.Text) == "":
		return tool.Result{Text: fmt.Sprintf("The question was answered by %s, without a word.", by), Summary: "answered by " + by}
	}
	return tool.Result{Text: fmt.Sprintf("Answer by %s:\n%s", by, a.Text), Summary: "answered by " + by}
}

//go:embed finish.md
var finishPage string

//go:embed finish_output.md
var finishOutputPage string

type finishIn struct {
	Text string `json:"text" jsonschema:"the result, for the user"`
}

// Finish returns the tool that ends a Run with a text.
func Finish() tool.Tool {
	return tool.Typed(ending(NameFinish, finishPage), func(_ context.Context, _ tool.Call, in finishIn) (tool.Result, error) {
		return tool.Result{Text: in.Text}, nil
	})
}

// FinishWith returns the tool that ends a Run with a value of a schema. The schema is also the schema of the tool's
// arguments, so the model writes the value like any call.
func FinishWith(output json.RawMessage) (tool.Tool, error) {
	if err := schema.Check(output); err != nil {
		return tool.Tool{}, fmt.Errorf("using the output schema: %w", err)
	}
	spec := ending(NameFinish, finishOutputPage)
	spec.Input = output
	return tool.Typed(spec, func(_ context.Context, _ tool.Call, value json.RawMessage) (tool.Result, error) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return tool.Result{}, fmt.Errorf("compacting the output: %w", err)
		}
		return tool.Result{Text: compact.String(), Output: compact.Bytes()}, nil
	}), nil
}

// ending returns the Spec of a tool that ends the Run. Its effect is only in the journal, so it can be repeated safely.
func ending(name, page string) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: tool.Idempotent, Concurrency: tool.Sequential, Internal: facts.Facts{Ends: true}.Internal(),
	}
}

//go:embed reject.md
var rejectPage string

type rejectIn struct {
	Reason string `json:"reason" jsonschema:"why it cannot or should not be done"`
}

// Reject returns the tool that ends a Run which cannot or should not be done.
func Reject() tool.Tool {
	return tool.Typed(ending(NameReject, rejectPage), func(_ context.Context, _ tool.Call, in rejectIn) (tool.Result, error) {
		return tool.Result{Text: in.Reason}, nil
	})
}

// The names of the tools.
const (
	NameThink  = "Think"
	NameFinish = "Finish"
	NameReject = "Reject"
	NameAsk    = "Ask"
)

//go:embed think.md
var thinkPage string

type thinkIn struct {
	Thought string `json:"thought" jsonschema:"what to think about"`
}

// Think returns a tool with which a model that does not reason by itself can reason between calls. It does nothing: the
// call is the record.
func Think() tool.Tool {
	spec := tool.Spec{
		Name: NameThink, Description: strings.TrimSpace(thinkPage),
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}
	return tool.Typed(spec, func(context.Context, tool.Call, thinkIn) (tool.Result, error) {
		return tool.Result{Text: "OK"}, nil
	})
}
