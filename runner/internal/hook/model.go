package hook

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Bounds of how much of a session a request to a hook has.
const (
	maxMessages = 32
	maxText     = 16 << 10
)

type beforeModel struct {
	requestHeader
	Step int64 `json:"step"`
	// Messages are the messages since the model's last answer, oldest first; only the last ones, if there are many.
	Messages []message `json:"messages"`
}

type message struct {
	Role    step.Role `json:"role"`
	Note    step.Note `json:"note,omitempty"`
	Name    string    `json:"name,omitempty"`
	IsError bool      `json:"isError,omitempty"`
	// Text is truncated if it is long.
	Text string `json:"text"`
}

type afterModel struct {
	requestHeader
	Step  int64  `json:"step"`
	Text  string `json:"text"`
	Calls []call `json:"calls"`
}

// A call is a tool call as the model wrote it: Args is JSON, or the text of invalid JSON as a string.
type call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// model returns a layer that calls the hooks before and after a model call.
func (c *caller) model(next middleware.ModelFunc) middleware.ModelFunc {
	return func(ctx context.Context, t *middleware.Turn) (model.Response, error) {
		if unreachable := c.unreachable.Load(); unreachable != nil {
			return model.Response{}, unreachable
		}
		if err := c.beforeModel(ctx, t); err != nil {
			return model.Response{}, err
		}
		number := nextStep(t)
		resp, err := next(ctx, t)
		if err != nil {
			return resp, err
		}
		err = c.afterModel(ctx, t.Scope, number, &resp)
		return resp, err
	}
}

// nextStep returns the number of the step that the answer will have.
func nextStep(t *middleware.Turn) int64 {
	if t.Request == nil || len(t.Request.Steps) == 0 {
		return 1
	}
	return t.Request.Steps[len(t.Request.Steps)-1].Seq + 1
}

func (c *caller) beforeModel(ctx context.Context, t *middleware.Turn) error {
	for _, h := range c.hooks[BeforeModel] {
		var change struct {
			Say string `json:"say"`
		}
		question := beforeModel{c.header(h, t.Scope), nextStep(t), c.newMessages(t)}
		did, err := c.callHook(ctx, h, question, func(answer []byte) (bool, error) {
			err := read(answer, &change)
			return change.Say != "", err
		})
		callreport.AddHook(ctx, did)
		if err := vetoError(h, did, err); err != nil {
			return err
		}
		if did.Did != step.HookChanged {
			continue
		}
		if err := t.Say(change.Say, step.NoteHook); err != nil {
			return fmt.Errorf("saying what the hook %s says: %w", h.Name, err)
		}
	}
	return nil
}

// newMessages returns the messages since the model's last answer.
func (c *caller) newMessages(t *middleware.Turn) []message {
	all := []message{}
	if t.Request == nil {
		return all
	}
	steps := t.Request.Steps
	from := len(steps)
	for from > 0 && len(steps)-from < maxMessages && steps[from-1].Role != step.RoleAssistant {
		from--
	}
	for _, s := range steps[from:] {
		text := task.Cut(c.Redact(s.Text()), maxText)
		all = append(all, message{Role: s.Role, Note: s.Note, Name: s.Name, IsError: s.IsError, Text: text})
	}
	return all
}

func (c *caller) afterModel(ctx context.Context, scope step.Scope, number int64, resp *model.Response) error {
	for _, h := range c.hooks[AfterModel] {
		question := afterModel{c.header(h, scope), number, c.Redact(text(resp.Parts)), c.calls(resp.Calls)}
		did, err := c.callHook(ctx, h, question, func(answer []byte) (bool, error) { return editResponse(resp, answer) })
		callreport.AddHook(ctx, did)
		if err := vetoError(h, did, err); err != nil {
			return err
		}
	}
	return nil
}

// editResponse applies the answer of a hook to a response of the model.
func editResponse(resp *model.Response, answer []byte) (bool, error) {
	var change struct {
		Text *string `json:"text"`
		Drop []int   `json:"drop"`
	}
	if err := read(answer, &change); err != nil {
		return false, err
	}
	for _, i := range change.Drop {
		if i < 0 || i >= len(resp.Calls) {
			return false, fmt.Errorf("it dropped the call %d of %d", i, len(resp.Calls))
		}
	}
	if change.Text != nil {
		resp.Parts = replaceText(resp.Parts, *change.Text)
	}
	if len(change.Drop) > 0 {
		resp.Parts = dropCallParts(resp.Parts, change.Drop)
		resp.Calls = dropCalls(resp.Calls, change.Drop)
		if len(resp.Calls) == 0 && resp.Finish == step.FinishCalls {
			resp.Finish = step.FinishStop
		}
	}
	return change.Text != nil || len(change.Drop) > 0, nil
}

// dropCalls returns the calls without those at the given indexes.
func dropCalls(calls []model.Call, drop []int) []model.Call {
	var kept []model.Call
	for i, c := range calls {
		if !slices.Contains(drop, i) {
			kept = append(kept, c)
		}
	}
	return kept
}

// dropCallParts returns the parts without the calls at the given indexes.
func dropCallParts(parts []step.Part, drop []int) []step.Part {
	var kept []step.Part
	n := 0
	for _, p := range parts {
		if p.Kind == step.PartCall {
			if n++; slices.Contains(drop, n-1) {
				continue
			}
		}
		kept = append(kept, p)
	}
	return kept
}

// replaceText replaces all text parts by one text; other parts stay.
func replaceText(parts []step.Part, text string) []step.Part {
	var after []step.Part
	replaced := text == ""
	for _, p := range parts {
		if p.Kind != step.PartText {
			after = append(after, p)
			continue
		}
		if !replaced {
			after = append(after, step.Part{Kind: step.PartText, Text: text})
			replaced = true
		}
	}
	if !replaced {
		after = append(after, step.Part{Kind: step.PartText, Text: text})
	}
	return after
}

func text(parts []step.Part) string {
	var b strings.Builder
	for _, p := range parts {
		if p.Kind == step.PartText {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

func (c *caller) calls(calls []model.Call) []call {
	all := make([]call, len(calls))
	for i, toolCall := range calls {
		all[i] = call{Name: c.Redact(toolCall.Name), Args: c.args(toolCall.Args)}
	}
	return all
}

// args returns redacted arguments: JSON, or a string if they are not JSON.
func (c *caller) args(written string) json.RawMessage {
	clean := c.Redact(plain(written))
	if json.Valid([]byte(clean)) {
		return json.RawMessage(clean)
	}
	quoted, _ := json.Marshal(clean) // a string: cannot fail
	return quoted
}

// plain returns JSON without unnecessary escapes, which would hide a secret from
// redaction. Other text stays unchanged.
func plain(written string) string {
	if !strings.Contains(written, `\`) || !json.Valid([]byte(written)) {
		return written
	}
	dec := json.NewDecoder(strings.NewReader(written))
	dec.UseNumber()
	var value any
	if dec.Decode(&value) != nil {
		return written
	}
	again, err := json.Marshal(value)
	if err != nil {
		return written
	}
	return string(again)
}
