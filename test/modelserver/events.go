package main

import "encoding/json"

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
func (c completion) events(model string) []map[string]any {
	textResult := c.Choices[0]
	list := []map[string]any{{"type": "message_start", "message": map[string]any{
		"id": "msg_" + c.ID, "type": "message", "role": "assistant", "model": model, "content": []any{}, "stop_reason": nil,
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
