package httpapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
)

// Merge applies a JSON Merge Patch (RFC 7396): objects are merged, a null
// removes, anything else replaces. The empty patch does nothing. Values of the body
// may be json.RawMessage.
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
		target, hasObject := object(body[key])
		switch {
		case value == nil:
			delete(body, key)
		case isObject && hasObject:
			apply(target, inner)
			body[key] = target
		case isObject:
			fresh := map[string]any{}
			apply(fresh, inner)
			body[key] = fresh
		default:
			body[key] = value
		}
	}
}

// object returns a value as an object, if it is one.
func object(value any) (map[string]any, bool) {
	raw, isRaw := value.(json.RawMessage)
	if !isRaw {
		o, ok := value.(map[string]any)
		return o, ok
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var o map[string]any
	err := decoder.Decode(&o)
	return o, err == nil && o != nil
}

// maxCacheKey is the maximum length of a cache key that OpenAI accepts.
const maxCacheKey = 64

// CacheKey returns the key of a session in a form that OpenAI accepts.
func CacheKey(session string) string {
	if len(session) <= maxCacheKey {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:])
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
