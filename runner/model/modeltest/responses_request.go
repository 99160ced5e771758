package modeltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

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
