package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxCacheKey is what OpenAI accepts as a cache key.
const maxCacheKey = 64

// body is a request as the wire wants it. It is made here and not by the
// client's own types because those leave out what is zero: a temperature of 0,
// an empty text, an empty reasoning_content.
func (c *client) body(req *model.Request) ([]byte, error) {
	p := req.Params
	b := map[string]any{
		"model":          c.dialect.deployed(c.Options),
		"messages":       c.messages(req),
		"stream":         true,
		"stream_options": map[string]any{"include_usage": true},
	}
	if len(req.Tools) > 0 {
		b["tools"] = functions(req.Tools)
	}
	if p.MaxOutputTokens > 0 {
		b[c.dialect.maxTokens] = p.MaxOutputTokens
	}
	if c.dialect.sampled(c.Model, p.Reasoning) {
		if p.Temperature != nil {
			b["temperature"] = *p.Temperature
		}
		if p.TopP != nil {
			b["top_p"] = *p.TopP
		}
	}
	if c.dialect.cacheKey != "" && req.CacheKey != "" {
		b[c.dialect.cacheKey] = cacheKey(req.CacheKey)
	}
	for _, patch := range []string{c.dialect.always, c.dialect.reasoning.of(c.Model)[p.Reasoning], string(p.Extra)} {
		if err := httpapi.Merge(b, patch); err != nil {
			return nil, fmt.Errorf("merging the model's extra parameters: %w", err)
		}
	}
	return httpapi.Encode(b)
}

// A function is a tool as the wire wants it.
type function struct {
	Type     string       `json:"type"`
	Function functionSpec `json:"function"`
}

type functionSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

func functions(tools []step.Tool) []function {
	list := make([]function, 0, len(tools))
	for _, t := range tools {
		list = append(list, function{Type: "function", Function: functionSpec{
			Name: t.Name, Description: t.Description, Parameters: t.Input,
		}})
	}
	return list
}

// cacheKey is a key that fits the field.
func cacheKey(key string) string {
	if len(key) <= maxCacheKey {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
