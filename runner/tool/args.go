package tool

import (
	"bytes"
	"encoding/json"
	"strings"
)

// A reading is a way to read what a model wrote as arguments: an object.
type reading struct {
	args json.RawMessage
	// guessed marks one that is used only if it fits the schema, because the model wrote it differently.
	guessed bool
}

// readings are the ways to read what a model wrote, the plainest first.
func readings(raw string) []reading {
	var all []reading
	add := func(one reading) {
		if object(one.args) {
			all = append(all, one)
			if rest, ok := withoutNulls(one.args); ok {
				all = append(all, reading{rest, true})
			}
		}
	}
	trimmed := strings.TrimSpace(raw)
	if trimmed == "" || trimmed == "null" {
		add(reading{args: json.RawMessage("{}")}) // how some models call a tool without arguments
	}
	add(reading{args: json.RawMessage(trimmed)})
	var inner string
	if json.Unmarshal([]byte(trimmed), &inner) == nil { // an object, encoded twice
		add(reading{args: json.RawMessage(inner)})
	}
	if len(all) == 0 {
		if repaired, ok := RepairJSON(raw); ok {
			add(reading{repaired, true})
		}
	}
	return all
}

// object reports whether args are a JSON object.
func object(args []byte) bool {
	return bytes.HasPrefix(bytes.TrimSpace(args), []byte("{")) && json.Valid(args)
}

// withoutNulls drops the arguments that are null: models write that for what
// they leave out.
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
