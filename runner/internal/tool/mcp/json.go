package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// maxBatch is how many messages may stand in one array.
const maxBatch = 256

// decode reads a message, or several in an array as old servers send them.
func decode(text []byte) ([]jsonrpc.Message, error) {
	if text[0] != '[' {
		m, err := message(text)
		if err != nil {
			return nil, err
		}
		return []jsonrpc.Message{m}, nil
	}
	parts, err := elements(text)
	if err != nil {
		return nil, err
	}
	all := make([]jsonrpc.Message, 0, len(parts))
	for _, part := range parts {
		m, err := message(part)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// message reads a message. The library is asked only for answers: reading takes
// it so much that a server could keep it busy with messages that are not needed.
func message(text []byte) (jsonrpc.Message, error) {
	var m struct {
		ID     any             `json:"id"`
		Method *string         `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.Method == nil {
		return jsonrpc.DecodeMessage(text)
	}
	id, err := jsonrpc.MakeID(m.ID)
	return &jsonrpc.Request{ID: id, Method: *m.Method, Params: m.Params}, err
}

// elements are those of a JSON array.
func elements(text []byte) ([]json.RawMessage, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	var all []json.RawMessage
	for dec.More() {
		if len(all) == maxBatch {
			return nil, errors.New("too many messages at once")
		}
		var one json.RawMessage
		if err := dec.Decode(&one); err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// progressLine is what people are shown of progress.
func progressLine(message string, done, total float64) string {
	text := line(message, maxQuote)
	switch {
	case total > 0:
		text = fmt.Sprintf("%s (%g/%g)", text, done, total)
	case text == "":
		text = fmt.Sprintf("(%g)", done)
	}
	return string(bytes.TrimSpace([]byte(text)))
}
