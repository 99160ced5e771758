package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Merge applies a JSON Merge Patch (RFC 7396): objects are merged, a null
// removes, anything else replaces. The empty patch does nothing.
func Merge(body map[string]any, patch string) error {
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

// Encode writes JSON without the escapes that only HTML needs: they would cost
// tokens of bytes in every request that holds code.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
