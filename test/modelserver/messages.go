package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// messages answers a request of the Messages API. It sends the same request to the script as chat completions, and
// converts the answer.
func messages(w http.ResponseWriter, r *http.Request, chat http.Handler) {
	var asked message
	err := json.NewDecoder(r.Body).Decode(&asked)
	if err == nil {
		err = asked.check()
	}
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	body, err := json.Marshal(asked.chat())
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.Body, inner.ContentLength = "/chat/completions", io.NopCloser(bytes.NewReader(body)), int64(len(body))
	recorded := httptest.NewRecorder()
	chat.ServeHTTP(recorded, inner) // a fault that hangs up panics, and so hangs up here too
	writeAnswer(w, recorded, asked)
}

// writeAnswer writes the answer of a script in the form of Messages.
func writeAnswer(w http.ResponseWriter, recorded *httptest.ResponseRecorder, asked message) {
	if recorded.Code != http.StatusOK {
		var failed struct {
			Error struct{ Message string }
		}
		_ = json.Unmarshal(recorded.Body.Bytes(), &failed) // then it says nothing
		if after := recorded.Header().Get("Retry-After"); after != "" {
			w.Header().Set("Retry-After", after)
		}
		refuse(w, recorded.Code, failed.Error.Message)
		return
	}
	var textResult completion
	if err := json.Unmarshal(recorded.Body.Bytes(), &textResult); err != nil || len(textResult.Choices) == 0 {
		w.Header().Set("Content-Type", recorded.Header().Get("Content-Type")) // a fault, as it is
		_, _ = w.Write(recorded.Body.Bytes())
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, event := range textResult.events(asked.Model) {
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", event["type"], encode(event))
	}
}

// A message has the fields of a request of the Messages API that the server reads.
type message struct {
	Model     string          `json:"model"`
	MaxTokens int64           `json:"max_tokens"`
	System    json.RawMessage `json:"system"`
	Stream    bool            `json:"stream"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Tools []struct {
		Name   string          `json:"name"`
		Schema json.RawMessage `json:"input_schema"`
	} `json:"tools"`
}

// check returns an error for a request that the provider would refuse and that the script would accept.
func (m message) check() error {
	switch {
	case m.MaxTokens <= 0:
		return fmt.Errorf("max_tokens: Field required")
	case !m.Stream:
		return fmt.Errorf("stream: only streams are played here")
	}
	for i, one := range m.Messages {
		if one.Role != "user" && one.Role != "assistant" {
			return fmt.Errorf("messages.%d.role: must be user or assistant", i)
		}
	}
	return nil
}

// A block is a part of a message. Content may be a list of blocks.
type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	CallID  string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
}

// blocks returns the parts of a content, which may also be a string.
func blocks(raw json.RawMessage) []block {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	var list []block
	_ = json.Unmarshal(raw, &list) // then there are none
	return list
}

// text returns the text of blocks.
func text(list []block) string {
	var all strings.Builder
	for _, b := range list {
		if b.Type == "text" {
			all.WriteString(b.Text)
		}
	}
	return all.String()
}

// chat returns the same request in the form of chat completions.
func (m message) chat() map[string]any {
	var list []map[string]any
	if system := text(blocks(m.System)); system != "" {
		list = append(list, map[string]any{"role": "system", "content": system})
	}
	for _, one := range m.Messages {
		for _, next := range turn(one.Role, blocks(one.Content)) {
			if n := len(list); n > 0 && list[n-1]["role"] == "tool" && next["role"] == "user" {
				list = append(list, map[string]any{"role": "assistant", "content": model.Interlude})
			}
			list = append(list, next)
		}
	}
	tools := []any{}
	for _, t := range m.Tools {
		tools = append(tools, map[string]any{"type": "function", "function": map[string]any{"name": t.Name, "parameters": t.Schema}})
	}
	return map[string]any{"model": m.Model, "messages": list, "tools": tools}
}

// turn returns one message as messages of chat completions, where each result of a tool is a message of its own.
func turn(role string, list []block) []map[string]any {
	var all []map[string]any
	var calls []any
	for _, b := range list {
		switch b.Type {
		case "tool_result":
			all = append(all, map[string]any{"role": "tool", "tool_call_id": b.CallID, "content": text(blocks(b.Content))})
		case "tool_use":
			calls = append(calls, map[string]any{"id": b.ID, "type": "function", "function": map[string]any{"name": b.Name, "arguments": string(b.Input)}})
		}
	}
	textResult := text(list)
	if textResult == "" && calls == nil {
		return all
	}
	whole := map[string]any{"role": role, "content": textResult}
	if calls != nil {
		whole["tool_calls"] = calls
	}
	return append(all, whole)
}

// refuse answers an error in the shape of Messages.
func refuse(w http.ResponseWriter, status int, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(encode(map[string]any{"type": "error", "error": map[string]any{"type": "scripted_error", "message": why}}))
}

// encode returns v as JSON, or the text of the error if the script has a raw part that is not JSON.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}

// Variants are scripts of a model for some requests: the script's model "gpt-5?the tide" answers in place of "gpt-5" if
// a request contains "the tide". If the texts of several variants occur, the variant whose text occurs last in the
// request answers. The turns of a variant are counted like those of other models.
type variants map[string][]string // texts by model

func variantsOf(names []string) variants {
	v := variants{}
	for _, name := range names {
		if of, text, ok := strings.Cut(name, "?"); ok {
			v[of] = append(v[of], text)
		}
	}
	return v
}

// choose puts the name of the variant into a request of chat completions, and
// its texts into the one form that scripts read.
func (v variants) choose(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err == nil {
			body = v.rename(body)
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

func (v variants) rename(body []byte) []byte {
	var fields map[string]json.RawMessage
	var requested, chosen string
	if json.Unmarshal(body, &fields) != nil || json.Unmarshal(fields["model"], &requested) != nil {
		return body // the script says what is wrong
	}
	fields["messages"] = plain(fields["messages"])
	last := -1
	for _, text := range v[requested] {
		if at := bytes.LastIndex(fields["messages"], []byte(text)); at > last {
			last, chosen = at, requested+"?"+text
		}
	}
	if last >= 0 {
		fields["model"] = encode(chosen)
	}
	return encode(fields)
}

// plain returns messages with each content that is a list of parts replaced by the text of these parts.
func plain(messages json.RawMessage) json.RawMessage {
	var list []map[string]json.RawMessage
	if json.Unmarshal(messages, &list) != nil {
		return messages
	}
	for _, m := range list {
		if bytes.HasPrefix(bytes.TrimSpace(m["content"]), []byte("[")) {
			m["content"] = encode(text(blocks(m["content"])))
		}
	}
	return encode(list)
}

// A completion is an answer of the API of chat completions.
type completion struct {
	ID      string `json:"id"`
	Choices []struct {
		Finish  string `json:"finish_reason"`
		Message struct {
			Content  string `json:"content"`
			Thinking string `json:"reasoning_content"`
			Calls    []struct {
				ID       string `json:"id"`
				Function struct {
					Name      string `json:"name"`
					Arguments string `json:"arguments"`
				} `json:"function"`
			} `json:"tool_calls"`
		} `json:"message"`
	} `json:"choices"`
	Usage struct {
		Input   int64 `json:"prompt_tokens"`
		Output  int64 `json:"completion_tokens"`
		Details struct {
			Cached int64 `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	} `json:"usage"`
}

// stops maps finish reasons of chat completions to stop reasons of Messages.
var stops = map[string]string{"stop": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "content_filter": "refusal"}

// signature stands for the signature of a provider under its thinking.
const signature = "c2NyaXB0ZWQ="

// events returns the answer as the events of a stream of Messages.
func (c completion) events(name string) []map[string]any {
	textResult := c.Choices[0]
	list := []map[string]any{{"type": "message_start", "message": map[string]any{
		"id": "msg_" + c.ID, "type": "message", "role": "assistant", "model": name, "content": []any{}, "stop_reason": nil,
		"usage": map[string]any{
			"input_tokens": c.Usage.Input - c.Usage.Details.Cached, "cache_read_input_tokens": c.Usage.Details.Cached,
			"cache_creation_input_tokens": 0, "output_tokens": 1,
		},
	}}}
	n := 0
	add := func(start map[string]any, deltas ...map[string]any) {
		list = append(list, map[string]any{"type": "content_block_start", "index": n, "content_block": start})
		for _, delta := range deltas {
			list = append(list, map[string]any{"type": "content_block_delta", "index": n, "delta": delta})
		}
		list = append(list, map[string]any{"type": "content_block_stop", "index": n})
		n++
	}
	if thought := textResult.Message.Thinking; thought != "" {
		add(map[string]any{"type": "thinking", "thinking": "", "signature": ""},
			map[string]any{"type": "thinking_delta", "thinking": thought},
			map[string]any{"type": "signature_delta", "signature": signature})
	}
	if text := textResult.Message.Content; text != "" {
		add(map[string]any{"type": "text", "text": ""}, map[string]any{"type": "text_delta", "text": text})
	}
	for _, call := range textResult.Message.Calls {
		add(map[string]any{"type": "tool_use", "id": "toolu_" + call.ID, "name": call.Function.Name, "input": json.RawMessage("{}")},
			map[string]any{"type": "input_json_delta", "partial_json": call.Function.Arguments})
	}
	return append(list,
		map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": stops[textResult.Finish], "stop_sequence": nil}, "usage": map[string]any{"output_tokens": c.Usage.Output}},
		map[string]any{"type": "message_stop"})
}
