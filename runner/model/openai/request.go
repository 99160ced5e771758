package openai

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	openai "github.com/sashabaranov/go-openai"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A request is the request of the client library, and the fields that its types lack: a temperature of 0, and the
// fields of providers.
type request struct {
	library openai.ChatCompletionRequest
	// fields are added to the body, and then patches are merged into it in their
	// order.
	fields  map[string]any
	patches []string
	// settings maps fields to the settings that they come from. messageFields are fields of messages that not every
	// provider knows.
	settings      map[string]string
	messageFields []string
}

// request returns the request in the form that the provider wants.
//
// The messages are fields, because the library's type has no null content, no marks of a prompt cache, and no data that
// providers require back. If the library wrote its own messages, and these were decoded and encoded again to add the
// rest, a resume with 20 MB of messages would take 510 ms of CPU instead of 160 ms.
func (c *client) request(req *model.Request) *request {
	p := req.Params
	messages := c.messages(req)
	r := &request{
		library: openai.ChatCompletionRequest{
			Model:         c.dialect.modelName(c.Options),
			Tools:         tools(req.Tools),
			StreamOptions: &openai.StreamOptions{IncludeUsage: true},
		},
		fields:  map[string]any{"model": c.dialect.modelName(c.Options), "messages": messages},
		patches: []string{c.dialect.extraBody, c.dialect.reasoning.of(c.Model)[p.Reasoning], string(p.Extra)},

		settings:      httpapi.Fields(c.dialect.reasoning.of(c.Model)[p.Reasoning], httpapi.SettingReasoning),
		messageFields: fieldsOf(messages),
	}
	r.settings["temperature"], r.settings["top_p"] = httpapi.SettingTemperature, httpapi.SettingTopP
	if p.MaxOutputTokens > 0 {
		r.fields[c.dialect.maxTokens] = p.MaxOutputTokens
	}
	if c.dialect.sampled(c.Model, p.Reasoning) {
		if p.Temperature != nil {
			r.fields["temperature"] = *p.Temperature
		}
		if p.TopP != nil {
			r.fields["top_p"] = *p.TopP
		}
	}
	if c.dialect.cacheKey != "" && req.CacheKey != "" {
		r.fields[c.dialect.cacheKey] = httpapi.CacheKey(req.CacheKey)
	}
	// The library refuses some requests by the name of a model of OpenAI, which
	// another provider may accept under that name.
	if openai.NewReasoningValidator().Validate(r.library) != nil {
		r.library.Model = ""
	}
	return r
}

func tools(list []step.Tool) []openai.Tool {
	var tools []openai.Tool
	for _, t := range list {
		input := t.Input
		if len(input) == 0 {
			input = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tools = append(tools, openai.Tool{Type: openai.ToolTypeFunction, Function: &openai.FunctionDefinition{
			Name: t.Name, Description: t.Description, Parameters: input,
		}})
	}
	return tools
}

// complete adds to the library's body the fields that its types lack. Equal requests get equal bytes, because the
// fields are sorted.
func (r *request) complete(written []byte) (map[string]any, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(written, &raw); err != nil {
		return nil, fmt.Errorf("decoding the client's request: %w", err)
	}
	body := maps.Clone(r.fields)
	for name, value := range raw {
		if _, ok := body[name]; !ok {
			body[name] = value
		}
	}
	for _, patch := range r.patches {
		if err := httpapi.Merge(body, patch); err != nil {
			return nil, fmt.Errorf("merging the model's extra parameters: %w", err)
		}
	}
	return body, nil
}

// fieldsOf returns the fields of messages that not every provider knows.
func fieldsOf(list []message) []string {
	found := map[string]bool{}
	for _, m := range list {
		found[fieldReasoningContent] = found[fieldReasoningContent] || m.ReasoningContent != nil
		found[fieldReasoning] = found[fieldReasoning] || m.Reasoning != nil
		found["reasoning_details"] = found["reasoning_details"] || m.ReasoningDetails != nil
		found[fieldCacheControl] = found[fieldCacheControl] || isMarked(m.Content)
	}
	maps.DeleteFunc(found, func(_ string, sent bool) bool { return !sent })
	return slices.Sorted(maps.Keys(found))
}
