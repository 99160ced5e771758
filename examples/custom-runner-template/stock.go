package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// maxAnswer bounds the bytes that are read of an answer.
const maxAnswer = 64 << 10

// stockIn are the arguments of the tool. Its JSON Schema is generated from them.
type stockIn struct {
	Item string `json:"item" jsonschema:"the number of the item, such as A-100"`
}

// A stock asks an HTTP service how many of an item there are.
type stock struct {
	base *url.URL
	key  registry.KeyFunc // nil: the service needs no key
}

// newStock returns the tool for an entry custom: Stock of an Agent. The service is
// settings.endpoint of the entry, its key settings.apiKeySecretRef.
func newStock(_ context.Context, spec registry.ToolSpec) ([]tool.Tool, error) {
	if spec.Entry.Endpoint == "" {
		return nil, errors.New("settings.endpoint is missing: set it to the URL of the service")
	}
	base, err := url.Parse(spec.Entry.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("reading settings.endpoint: %w", err)
	}
	s := &stock{base: base, key: spec.Key}
	return []tool.Tool{tool.Typed(tool.Spec{
		Name: "Stock", Description: "Returns how many of an item are in stock.",
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}, s.lookUp)}, nil
}

// lookUp makes one call. The model reads the errors that it returns.
func (s *stock) lookUp(ctx context.Context, _ tool.Call, in stockIn) (tool.Result, error) {
	at := *s.base
	at.RawQuery = url.Values{"item": {in.Item}}.Encode() // in a path, ".." would lead elsewhere
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return tool.Result{}, err
	}
	if s.key != nil {
		key, err := s.key() // each time, because Secrets rotate
		if err != nil {
			return tool.Result{}, fmt.Errorf("reading the key: %w", err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return tool.Result{}, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return tool.Fail("there is no item "+in.Item, "Check the number: it is a letter, a dash and digits."), nil
	default:
		return tool.Result{}, fmt.Errorf("the service answered %s", resp.Status)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	return tool.Result{Text: string(text)}, err
}
