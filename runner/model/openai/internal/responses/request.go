package responses

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// The fields of a request that a repair may change. Fields of items are separate.
const (
	fieldMaxTokens = "max_output_tokens"
	fieldReasoning = "reasoning"
	fieldSummary   = "summary"           // of reasoning
	fieldEncrypted = "encrypted_content" // of a reasoning item
	fieldPhase     = "phase"             // of a message
)

// efforts are the names of the levels of reasoning.
var efforts = map[model.Reasoning]string{
	model.ReasoningOff:    "none",
	model.ReasoningLow:    "low",
	model.ReasoningMedium: "medium",
	model.ReasoningHigh:   "high",
}

// A reasoning is the field of that name. Without a summary no reasoning can be shown.
type reasoning struct {
	Effort  string `json:"effort"`
	Summary string `json:"summary,omitempty"`
}

// A tool is a function that the model may call. Strict would need schemas in which all
// properties are required.
type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// body returns the body of the request, and keeps a description of it. Equal requests have
// equal bytes.
func (e *exchange) body() ([]byte, error) {
	p, repairs := e.req.Params, e.repairs.Now()
	w := e.newWriter(repairs, e.refused.UpTo(e.req.CacheKey))
	w.conversation = e.files.Conversation(e.req)
	body := map[string]any{
		"model":   e.Model,
		"stream":  true,
		"store":   false,
		"include": []string{"reasoning.encrypted_content"},
		"input":   w.input(w.conversation.Steps),
	}
	if e.req.System != "" {
		body["instructions"] = e.req.System
	}
	if len(e.req.Tools) > 0 {
		body["tools"] = tools(e.req.Tools)
	}
	if p.MaxOutputTokens > 0 {
		body[fieldMaxTokens] = p.MaxOutputTokens
	}
	if e.CacheKey && e.req.CacheKey != "" {
		body["prompt_cache_key"] = httpapi.CacheKey(e.req.CacheKey)
	}
	if err := addReasoning(body, p.Reasoning, repairs); err != nil {
		return nil, err
	}
	e.addSampling(body)
	if err := httpapi.Merge(body, string(p.Extra)); err != nil {
		return nil, fmt.Errorf("merging the model's extra parameters: %w", err)
	}
	_, limit := repairs.Apply(body, fieldMaxTokens)
	e.Sent = httpapi.NewSent(e.req, body, map[string]string{
		fieldMaxTokens: httpapi.SettingOutput, "temperature": httpapi.SettingTemperature, "top_p": httpapi.SettingTopP,
		fieldReasoning: httpapi.SettingReasoning,
	})
	e.Sent.OutputField, e.Sent.MaxOutput = fieldMaxTokens, limit
	e.Sent.MessageFields = append(w.fields(), fieldSummary)
	return httpapi.Encode(body)
}

// addReasoning sets how hard the model thinks. Models that do not think refuse the field.
func addReasoning(body map[string]any, level model.Reasoning, repairs httpapi.Repairs) error {
	if level == "" {
		return nil
	}
	effort, ok := efforts[level]
	if !ok {
		return fmt.Errorf("reasoning %q is not known", level)
	}
	r := reasoning{Effort: effort}
	if level != model.ReasoningOff && !repairs.Dropped(fieldSummary) {
		r.Summary = "auto"
	}
	raw, err := httpapi.Encode(r)
	body[fieldReasoning] = json.RawMessage(raw) // which extra parameters may be merged into
	return err
}

func (e *exchange) addSampling(body map[string]any) {
	p := e.req.Params
	if !e.IsSampled(p.Reasoning) {
		return
	}
	if p.Temperature != nil {
		body["temperature"] = *p.Temperature
	}
	if p.TopP != nil {
		body["top_p"] = *p.TopP
	}
}

func tools(list []step.Tool) []tool {
	tools := make([]tool, 0, len(list))
	for _, t := range list {
		input := t.Input
		if len(input) == 0 {
			input = json.RawMessage(`{"type":"object","properties":{}}`)
		}
		tools = append(tools, tool{Type: "function", Name: t.Name, Description: t.Description, Parameters: input})
	}
	return tools
}
