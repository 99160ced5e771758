package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// A chunk of few bytes may hold very many things. What is more than this is no
// answer, and is not kept in memory.
const (
	maxChoices = 64
	maxPieces  = 4 * maxCalls
	maxDetails = 1024
	maxTurns   = 10_000 // from thinking to text, in an answer
)

var errTooMany = errors.New("it holds more than any answer does")

// decode reads a chunk into c, whose memory it uses again; what it keeps of data
// unread is valid as long as data is. A value of an unexpected type leaves its
// field empty; only what is no JSON at all is an error.
func (c *chunk) decode(data []byte) error {
	if !valid(data) {
		return json.Unmarshal(data, new(json.RawMessage)) // which says why
	}
	*c = chunk{Choices: c.Choices[:0]}
	var err error
	for key, value := range members(data) {
		switch string(key) {
		case "choices":
			c.Choices, err = decodeChoices(value, c.Choices[:0])
		case "usage":
			c.Usage = decodeUsage(value)
		case "error":
			c.Error = value
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func decodeChoices(data []byte, list []choice) ([]choice, error) {
	for value := range elements(data) {
		switch {
		case len(list) == maxChoices:
			return list, errTooMany
		case len(list) < cap(list):
			list = list[:len(list)+1]
		default:
			list = append(list, choice{})
		}
		if err := list[len(list)-1].decode(value); err != nil {
			return list, err
		}
	}
	return list, nil
}

func (c *choice) decode(data []byte) error {
	*c = choice{Delta: saying{ToolCalls: c.Delta.ToolCalls[:0]}}
	for key, value := range members(data) {
		switch string(key) {
		case "index":
			c.Index, _ = strconv.Atoi(string(value))
		case "delta":
			c.Delta.decode(value)
		case "message":
			c.Message.decode(value)
		case "finish_reason":
			c.FinishReason = httpapi.Text(httpapi.String(value))
		case "usage":
			c.Usage = decodeUsage(value)
		}
	}
	return errors.Join(c.Delta.check(), c.Message.check())
}

func (s *saying) check() error {
	if len(s.ToolCalls) > maxPieces || len(s.ReasoningDetails) > maxPieces {
		return errTooMany
	}
	return nil
}

// decodeUsage is what an answer cost, if that is told.
func decodeUsage(data []byte) *usage {
	if data[0] != '{' {
		return nil
	}
	u := &usage{}
	_ = json.Unmarshal(data, u) // valid; what is of another type counts as absent
	return u
}

func (s *saying) decode(data []byte) {
	for key, value := range members(data) {
		switch string(key) {
		case "content":
			_ = s.Content.UnmarshalJSON(value) // accepts any value
		case "refusal":
			s.Refusal = httpapi.Fragment(httpapi.ParseFragment(value))
		case "reasoning":
			s.Reasoning = httpapi.Fragment(httpapi.ParseFragment(value))
		case "reasoning_content":
			s.ReasoningContent = httpapi.Fragment(httpapi.ParseFragment(value))
		case "reasoning_details":
			s.ReasoningDetails = decodeDetails(value)
		case "tool_calls":
			s.ToolCalls = decodeCalls(value, s.ToolCalls[:0])
		case "function_call":
			if value[0] == '{' {
				s.FunctionCall = &functionPiece{}
				s.FunctionCall.decode(value)
			}
		case "extra_content":
			s.ExtraContent = kept(value)
		}
	}
}

func (f *functionPiece) decode(data []byte) {
	for key, value := range members(data) {
		switch string(key) {
		case "name":
			f.Name = httpapi.Text(httpapi.String(value))
		case "arguments":
			f.Arguments = value
		}
	}
}

// decodeDetails and decodeCalls stop where there is one too many.
func decodeDetails(data []byte) []json.RawMessage {
	var list []json.RawMessage
	for value := range elements(data) {
		if len(list) > maxPieces {
			break
		}
		list = append(list, value)
	}
	return list
}

func decodeCalls(data []byte, list []callPiece) []callPiece {
	for value := range elements(data) {
		if len(list) > maxPieces {
			break
		}
		list = append(list, decodeCall(value))
	}
	return list
}

func decodeCall(data []byte) callPiece {
	p := callPiece{}
	for key, value := range members(data) {
		switch string(key) {
		case "index":
			if n, err := strconv.Atoi(string(value)); err == nil {
				p.Index = &n
			}
		case "id":
			p.ID = httpapi.Text(httpapi.String(value))
		case "function":
			p.Function.decode(value)
		case "extra_content":
			p.ExtraContent = kept(value)
		}
	}
	return p
}

// kept is a value that is kept beyond its chunk; a null is none.
func kept(value []byte) json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	return bytes.Clone(value)
}
