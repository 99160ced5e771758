package args

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A Reading is one interpretation of the arguments that a model wrote: an object.
type Reading struct {
	Args json.RawMessage
	// Guessed marks a reading that is used only if it matches the schema, because the model wrote something else.
	Guessed bool
}

// Readings returns the possible readings of the arguments that a model wrote, the most literal first.
func Readings(raw string) []Reading {
	var all []Reading
	add := func(one Reading) {
		if object(one.Args) {
			all = append(all, one)
			if rest, ok := withoutNulls(one.Args); ok {
				all = append(all, Reading{rest, true})
			}
		}
	}
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" || trimmed == "null" {
		add(Reading{Args: json.RawMessage("{}")}) // how some models call a tool without arguments
	}
	add(Reading{Args: json.RawMessage(trimmed)})
	var inner string
	if json.Unmarshal([]byte(trimmed), &inner) == nil { // an object, encoded twice
		add(Reading{Args: json.RawMessage(inner)})
	}
	if len(all) == 0 {
		if repaired, ok := RepairJSON(raw); ok {
			add(Reading{repaired, true})
		}
	}
	return all
}

// object reports whether args is a JSON object.
func object(args []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(args), []byte("{")) && json.Valid(args)
}

// withoutNulls removes arguments that are null: models write null for arguments that they omit.
func withoutNulls(args json.RawMessage) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return nil, false
	}
	before := len(members)
	for name, value := range members {
		if string(value) == "null" {
			delete(members, name)
		}
	}
	if len(members) == before {
		return nil, false
	}
	rest, err := json.Marshal(members)
	return rest, err == nil
}
