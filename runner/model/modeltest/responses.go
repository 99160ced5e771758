package modeltest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
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
