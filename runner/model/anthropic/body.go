package anthropic

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// lastFields are the fields at the end of a body, in this order. messages grow, so they are last, and each request of a
// session begins with the bytes of the one before it, except for cache_control.
var lastFields = []string{"tools", "system", "messages"}

const (
	fieldMaxTokens    = "max_tokens"
	fieldCacheControl = "cache_control"
)

// body returns the fields of a request, with the content of a paused answer. Its bytes do not
// change from request to request, so that the prompt cache matches.
func (c *client) body(req *model.Request, previous []json.RawMessage) (map[string]any, error) {
	w := c.write(req)
	limit, err := c.limit(req.Params)
	if err != nil {
		return nil, err
	}
	b := c.head()
	b[fieldMaxTokens] = limit
	b["messages"] = w.messages(w.conversation.Steps, previous)
	if system := w.system(req.System); system != nil {
		b["system"] = system
	}
	if len(req.Tools) > 0 {
		b["tools"] = w.tools(req.Tools)
	}
	thinks, err := c.think(b, req, limit)
	if err != nil {
		return nil, err
	}
	if !thinks {
		c.sample(b, req.Params)
	}
	if err := httpapi.Merge(b, string(req.Params.Extra)); err != nil {
		return nil, fmt.Errorf("merging the model's extra parameters: %w", err)
	}
	return b, nil
}

// head returns the fields that select and configure the model.
func (c *client) head() map[string]any {
	if c.dialect.invokes {
		return map[string]any{"anthropic_version": bedrockVersion}
	}
	return map[string]any{"model": c.model, "stream": true}
}

// limit returns the maximum of output tokens, which extra parameters may set too.
func (c *client) limit(p model.Params) (int64, error) {
	var extra struct {
		MaxTokens *int64 `json:"max_tokens"`
	}
	if len(p.Extra) > 0 {
		if err := json.Unmarshal(p.Extra, &extra); err != nil {
			return 0, fmt.Errorf("merging the model's extra parameters: %w", err)
		}
	}
	switch {
	case extra.MaxTokens != nil:
		return c.repairs.Now().MaxOutput(*extra.MaxTokens), nil
	case p.MaxOutputTokens > 0:
		return c.repairs.Now().MaxOutput(p.MaxOutputTokens), nil
	}
	return c.repairs.Now().MaxOutput(c.family.maxTokens), nil
}

// sample adds temperature and top_p if the model accepts them.
func (c *client) sample(b map[string]any, p model.Params) {
	if c.family.sampling == samplesNone {
		return
	}
	if p.Temperature != nil {
		b["temperature"] = *p.Temperature
	}
	if p.TopP != nil && (p.Temperature == nil || c.family.sampling == samplesBoth) {
		b["top_p"] = *p.TopP
	}
}

// encode writes a body with lastFields at its end.
func encode(body map[string]any) ([]byte, error) {
	keys := slices.Sorted(maps.Keys(body))
	keys = slices.DeleteFunc(keys, func(key string) bool { return slices.Contains(lastFields, key) })
	var out bytes.Buffer
	for _, key := range append(keys, lastFields...) {
		value, ok := body[key]
		if !ok {
			continue
		}
		name, err := httpapi.Encode(key)
		if err != nil {
			return nil, err
		}
		data, err := httpapi.Encode(value)
		if err != nil {
			return nil, err
		}
		out.WriteByte(separator(out.Len()))
		out.Write(name)
		out.WriteByte(':')
		out.Write(data)
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// separator returns the byte before a field.
func separator(written int) byte {
	if written == 0 {
		return '{'
	}
	return ','
}

// minBudget is the smallest thinking budget that the API accepts.
const minBudget = 1024

// budgets are the thinking budgets of the levels of reasoning, in tokens. The limit of the
// answer may lower them.
var budgets = map[model.Reasoning]int64{
	model.ReasoningLow:    4_096,
	model.ReasoningMedium: 12_288,
	model.ReasoningHigh:   24_576,
}

// efforts are the names of the levels of reasoning in the API.
var efforts = map[model.Reasoning]string{
	model.ReasoningLow:    "low",
	model.ReasoningMedium: "medium",
	model.ReasoningHigh:   "high",
}

// think turns thinking on or off, and reports whether it is on.
func (c *client) think(b map[string]any, req *model.Request, limit int64) (bool, error) {
	level := req.Params.Reasoning
	switch {
	case level == "":
		return false, nil
	case level == model.ReasoningOff:
		return false, httpapi.Merge(b, c.family.off)
	case efforts[level] == "":
		return false, fmt.Errorf("reasoning %q is not known", level)
	}
	if c.family.thinking != thinksBudget {
		b["output_config"] = map[string]any{"effort": cmp.Or(c.family.efforts[level], efforts[level])}
	}
	switch c.family.thinking {
	case thinksAlways:
		return true, nil
	case thinksAdaptive:
		// The default of later models is to omit thinking, and texts between calls.
		b["thinking"] = map[string]any{"type": "adaptive", "display": "summarized"}
		return true, nil
	default:
		return c.thinkWithBudget(b, req, limit), nil
	}
}

// thinkWithBudget turns thinking on with a budget if there is room for it.
func (c *client) thinkWithBudget(b map[string]any, req *model.Request, limit int64) bool {
	level := req.Params.Reasoning
	budget := budget(level, limit)
	if budget == 0 || c.dialect.echo == echoSigned && c.startedWithoutThinking(req) {
		return false
	}
	b["thinking"] = map[string]any{"type": "enabled", "budget_tokens": budget}
	return true
}

// budget returns the thinking budget: at most three quarters of the limit, and 0 if that is
// below minBudget.
func budget(level model.Reasoning, limit int64) int64 {
	n := min(budgets[level], limit-limit/4)
	if n < minBudget {
		return 0
	}
	return n
}

// startedWithoutThinking reports whether the open turn began without thinking: by another
// model, or with thinking off. The API refuses thinking until the next message of the user.
func (c *client) startedWithoutThinking(req *model.Request) bool {
	var first *step.Step
	for i := range req.Steps {
		switch s := &req.Steps[i]; {
		case s.Role == step.RoleUser:
			first = nil
		case s.Role == step.RoleAssistant && first == nil:
			first = s
		}
	}
	return first != nil && !c.write(req).sendsThinking(first.ForModel(c.name))
}
