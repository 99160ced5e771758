package openai

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/model"
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
		"model":          c.Model,
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
	if p.Temperature != nil {
		b["temperature"] = *p.Temperature
	}
	if p.TopP != nil {
		b["top_p"] = *p.TopP
	}
	if c.dialect.cacheKey != "" && req.CacheKey != "" {
		b[c.dialect.cacheKey] = cacheKey(req.CacheKey)
	}
	for _, patch := range []string{c.dialect.reasoning[p.Reasoning], string(p.Extra)} {
		if err := merge(b, patch); err != nil {
			return nil, fmt.Errorf("merging the model's extra parameters: %w", err)
		}
	}
	return encode(b)
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

// merge applies a JSON Merge Patch (RFC 7396): objects are merged, a null
// removes, anything else replaces. The empty patch does nothing.
func merge(body map[string]any, patch string) error {
	if patch == "" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(patch)))
	decoder.UseNumber() // numbers reach the provider as they were written
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return fmt.Errorf("decoding a JSON object: %w", err)
	}
	if decoder.More() {
		return errors.New("there is something after the JSON object")
	}
	apply(body, values)
	return nil
}

func apply(body, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		target, hasObject := body[key].(map[string]any)
		switch {
		case value == nil:
			delete(body, key)
		case isObject && hasObject:
			apply(target, inner)
		case isObject:
			fresh := map[string]any{}
			apply(fresh, inner)
			body[key] = fresh
		default:
			body[key] = value
		}
	}
}

// encode writes JSON without the escapes that only HTML needs: they would cost
// tokens of bytes in every request that holds code.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
