package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// responses is the wire of OpenAI's Responses.
var responses = &wire{
	read:    readResponses,
	check:   func(r Request) error { return r.items.check() },
	keys:    func(h http.Header) []string { return []string{h.Get("Authorization"), h.Get("Api-Key")} },
	render:  renderResponses,
	failure: chat.failure,
}

// incompleteReasons are the reasons of the Responses API for incomplete answers.
var incompleteReasons = map[step.Finish]string{
	step.FinishLength:  "max_output_tokens",
	step.FinishRefusal: "content_filter",
	step.FinishOther:   "other",
}

// The phases of a message.
const (
	phaseCommentary = "commentary"
	phaseFinal      = "final_answer"
)

// An outputItem is an item of an answer.
type outputItem = map[string]any

// renderResponses returns the answer to a request in the format of the Responses API.
func renderResponses(r Request, t Turn) playback {
	items := t.items(r)
	if !r.Stream {
		return playback{contentType: "application/json", chunks: [][]byte{encode(t.response(r, items, t.status()))}, delay: t.delay()}
	}
	p := playback{contentType: "text/event-stream", delay: t.delay()}
	say := func(kind string, fields map[string]any) {
		fields["type"], fields["sequence_number"] = kind, len(p.chunks)
		p.chunks = append(p.chunks, fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, encode(fields)))
	}
	say("response.created", map[string]any{"response": t.response(r, []any{}, "in_progress")})
	for i, item := range items {
		streamItem(item.(outputItem), func(kind string, fields map[string]any) {
			fields["output_index"] = i
			say(kind, fields)
		})
	}
	say("response."+t.status(), map[string]any{"response": t.response(r, items, t.status())})
	return p
}

// status returns how the answer ends.
func (t Turn) status() string {
	if t.reason(incompleteReasons) != "" {
		return "incomplete"
	}
	return "completed"
}

// response returns an answer with the given items.
func (t Turn) response(r Request, items []any, status string) map[string]any {
	whole := map[string]any{
		"id": fmt.Sprintf("resp_%d", r.turn()), "object": "response", "model": r.Model, "store": false,
		"status": status, "output": items, "error": nil, "incomplete_details": nil, "usage": nil,
	}
	if status == "in_progress" {
		return whole
	}
	if status == "incomplete" {
		whole["incomplete_details"] = map[string]any{"reason": t.reason(incompleteReasons)}
	}
	u := t.spent(r)
	usage := map[string]any{
		"input_tokens": u.Input, "output_tokens": u.Output, "total_tokens": u.Input + u.Output,
		"input_tokens_details":  map[string]any{"cached_tokens": u.CacheRead},
		"output_tokens_details": map[string]any{"reasoning_tokens": u.Reasoning},
	}
	if u.CostUSD != "" {
		usage["cost"] = u.CostUSD
	}
	whole["usage"] = usage
	return whole
}

// items returns the items of an answer. Reasoning is encrypted together with the items after it.
func (t Turn) items(r Request) []any {
	var after []outputItem
	if t.Text != "" {
		phase := phaseFinal
		if len(t.Calls) > 0 {
			phase = phaseCommentary
		}
		after = append(after, outputItem{
			"type": "message", "id": fmt.Sprintf("msg_%d", r.turn()), "role": "assistant", "status": "completed", "phase": phase,
			"content": []any{map[string]any{"type": "output_text", "text": t.Text, "annotations": []any{}}},
		})
	}
	for i, c := range t.Calls {
		after = append(after, outputItem{
			"type": "function_call", "id": fmt.Sprintf("fc_%d_%d", r.turn(), i), "status": "completed",
			"call_id": fmt.Sprintf("call_%d_%d", r.turn(), i), "name": c.Name, "arguments": c.text(),
		})
	}
	var list []any
	if t.Thinking != "" {
		list = append(list, outputItem{
			"type": "reasoning", "id": fmt.Sprintf("rs_%d", r.turn()), "encrypted_content": encrypt(after),
			"summary": []any{map[string]any{"type": "summary_text", "text": t.Thinking}},
		})
	}
	for _, item := range after {
		list = append(list, item)
	}
	return list
}

// mark returns the part of an item that must be unchanged when it is sent back.
func mark(item outputItem) string {
	if item["type"] == "message" {
		return fmt.Sprintf("message %v %s", item["phase"], textOf(item["content"]))
	}
	return fmt.Sprintf("%v %v %v", item["type"], item["call_id"], item["name"])
}

// textOf joins the texts of a content.
func textOf(content any) string {
	if text, ok := content.(string); ok {
		return text
	}
	var b strings.Builder
	list, _ := content.([]any)
	for _, c := range list {
		part, _ := c.(map[string]any)
		text, _ := part["text"].(string)
		b.WriteString(text)
	}
	return b.String()
}

// encrypt returns the encrypted content of reasoning that led to these items.
func encrypt(after []outputItem) string {
	marks := []string{}
	for _, item := range after {
		marks = append(marks, mark(item))
	}
	return "encrypted-" + base64.RawURLEncoding.EncodeToString(encode(marks))
}

// decrypt returns the marks of the items after a reasoning item, from its encrypted content.
func decrypt(encrypted string) ([]string, bool) {
	text, ok := strings.CutPrefix(encrypted, "encrypted-")
	data, err := base64.RawURLEncoding.DecodeString(text)
	var marks []string
	return marks, ok && err == nil && json.Unmarshal(data, &marks) == nil
}

// streamItem streams an item in pieces.
func streamItem(item outputItem, say func(kind string, fields map[string]any)) {
	begun := outputItem{"type": item["type"], "id": item["id"], "status": "in_progress"}
	var deltas []map[string]any
	kind := ""
	grow := func(event, text string, fields map[string]any) {
		kind = event
		for _, piece := range pieces(text) {
			delta := map[string]any{"delta": piece, "item_id": item["id"]}
			maps.Copy(delta, fields)
			deltas = append(deltas, delta)
		}
	}
	switch item["type"] {
	case "message":
		begun["role"], begun["content"], begun["phase"] = "assistant", []any{}, item["phase"]
		grow("response.output_text.delta", textOf(item["content"]), map[string]any{"content_index": 0})
	case "function_call":
		begun["call_id"], begun["name"], begun["arguments"] = item["call_id"], item["name"], ""
		grow("response.function_call_arguments.delta", item["arguments"].(string), nil)
	case "reasoning":
		begun["summary"], begun["encrypted_content"] = []any{}, "encrypted-"
		grow("response.reasoning_summary_text.delta", textOf(item["summary"]), map[string]any{"summary_index": 0})
	}
	say("response.output_item.added", map[string]any{"item": begun})
	for _, delta := range deltas {
		say(kind, delta)
	}
	if item["type"] == "function_call" {
		say("response.function_call_arguments.done", map[string]any{"item_id": item["id"], "arguments": item["arguments"]})
	}
	say("response.output_item.done", map[string]any{"item": item})
}

// An itemsRequest is a request on the wire of Responses.
type itemsRequest struct {
	Model        string       `json:"model"`
	Stream       bool         `json:"stream"`
	Store        *bool        `json:"store"`
	Previous     string       `json:"previous_response_id"`
	Instructions string       `json:"instructions"`
	Input        []outputItem `json:"input"`
	Tools        []struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"tools"`
}

// readResponses sets the fields of a Request as for chat completions, so that a script and a test are the same for all
// APIs.
func readResponses(r *Request) error {
	if err := json.Unmarshal(r.Raw, &r.items); err != nil {
		return err
	}
	r.Model, r.Stream = r.items.Model, r.items.Stream
	for _, t := range r.items.Tools {
		var tool Tool
		tool.Function.Name, tool.Function.Parameters = t.Name, t.Parameters
		r.Tools = append(r.Tools, tool)
	}
	if text := r.items.Instructions; text != "" {
		r.Messages = append(r.Messages, Message{Role: "system", Content: &text})
	}
	for _, item := range r.items.Input {
		r.Messages = addItem(r.Messages, item)
		last := &r.Messages[len(r.Messages)-1]
		for _, field := range []string{"content", "output"} {
			if err := last.addItemFiles(item[field]); err != nil {
				return err
			}
		}
	}
	return nil
}

// addItemFiles adds the files of a content, which may also be a text.
func (m *Message) addItemFiles(content any) error {
	list, _ := content.([]any)
	for _, c := range list {
		part, _ := c.(map[string]any)
		text := func(field string) string { s, _ := part[field].(string); return s }
		var err error
		switch kind := text("type"); {
		case kind == "input_image" && text("detail") != "":
			err = m.addURL(text("image_url"), imageTypes)
		case kind == "input_file" && text("filename") != "":
			err = m.addURL(text("file_data"), documentTypes)
		case kind != "input_text" && kind != "output_text":
			err = fmt.Errorf("invalid value: %q", kind)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addItem adds an item to messages: the items of one answer are one message.
func addItem(messages []Message, item outputItem) []Message {
	text := func(field string) string { s, _ := item[field].(string); return s }
	content := textOf(item["content"])
	switch {
	case item["type"] == "function_call_output":
		output := textOf(item["output"])
		return append(messages, Message{Role: "tool", ToolCallID: text("call_id"), Content: &output})
	case item["role"] == "user":
		return append(messages, Message{Role: "user", Content: &content})
	}
	if n := len(messages); n == 0 || messages[n-1].Role != "assistant" {
		messages = append(messages, Message{Role: "assistant"})
	}
	answer := &messages[len(messages)-1]
	switch item["type"] {
	case "message":
		if answer.Content != nil {
			content = *answer.Content + content
		}
		answer.Content = &content
	case "function_call":
		call := ToolCall{ID: text("call_id")}
		call.Function.Name, call.Function.Arguments = text("name"), text("arguments")
		answer.ToolCalls = append(answer.ToolCalls, call)
	}
	return messages
}

// check refuses what OpenAI refuses.
func (r itemsRequest) check() error {
	switch {
	case r.Store == nil || *r.Store:
		return errors.New("store: nothing is stored for this organization")
	case r.Previous != "":
		return fmt.Errorf("previous response with id '%s' not found", r.Previous)
	case len(r.Input) == 0:
		return errors.New("input is empty")
	}
	var calls openCalls
	for i, item := range r.Input {
		err := checkItem(item)
		if err == nil {
			err = calls.settle(item)
		}
		if err == nil && item["type"] == "reasoning" {
			err = checkFollowing(item, r.Input[i+1:])
		}
		if err != nil {
			return fmt.Errorf("input[%d]: %w", i, err)
		}
	}
	if len(calls.ids) > 0 {
		return fmt.Errorf("no tool output found for function call %s", calls.ids[0])
	}
	return nil
}

// checkItem refuses an item by itself.
func checkItem(item outputItem) error {
	text := func(field string) string { s, _ := item[field].(string); return s }
	switch kind := text("type"); {
	case item["id"] != nil:
		return fmt.Errorf("item with id '%v' not found: items are not persisted when `store` is set to false", item["id"])
	case kind == "message" && textOf(item["content"]) == "":
		return errors.New("a message without content")
	case kind == "message" && !slices.Contains([]string{"user", "assistant", "developer", "system"}, text("role")):
		return fmt.Errorf("unknown role %q", text("role"))
	case kind == "function_call" && (text("call_id") == "" || !legalName.MatchString(text("name")) || !json.Valid([]byte(text("arguments")))):
		return fmt.Errorf("the call %v lacks an id, a name or JSON arguments", item)
	case kind == "function_call_output" && textOf(item["output"]) == "":
		return errors.New("an output without text")
	case !slices.Contains([]string{"message", "function_call", "function_call_output", "reasoning"}, kind):
		return fmt.Errorf("invalid value: %q", kind)
	}
	return nil
}

// checkFollowing refuses reasoning without the unchanged items that followed it.
func checkFollowing(reasoning outputItem, after []outputItem) error {
	encrypted, _ := reasoning["encrypted_content"].(string)
	marks, ok := decrypt(encrypted)
	if !ok || reasoning["summary"] == nil {
		return fmt.Errorf("the encrypted content %.20s could not be verified", encrypted)
	}
	for i, want := range marks {
		if i >= len(after) || mark(after[i]) != want {
			return fmt.Errorf("item of type 'reasoning' was provided without its required following item %q", want)
		}
	}
	return nil
}

// openCalls are the calls without a result so far.
type openCalls struct {
	ids     []string
	results bool // some of them have one
}

// settle handles an item: the results follow all calls of an answer, in their order.
func (c *openCalls) settle(item outputItem) error {
	id, _ := item["call_id"].(string)
	switch {
	case item["type"] == "function_call_output" && (len(c.ids) == 0 || c.ids[0] != id):
		return fmt.Errorf("no tool call found for function call output with call_id %s, next is one of %v", id, c.ids)
	case item["type"] == "function_call_output":
		c.ids = c.ids[1:]
		c.results = len(c.ids) > 0
	case len(c.ids) > 0 && (c.results || item["role"] == "user"):
		return fmt.Errorf("no tool output found for function call %s", c.ids[0])
	case item["type"] == "function_call" && slices.Contains(c.ids, id):
		return fmt.Errorf("duplicate call_id %s", id)
	case item["type"] == "function_call":
		c.ids = append(c.ids, id)
	}
	return nil
}
