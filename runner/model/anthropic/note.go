package anthropic

import (
	"encoding/json"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// A note is an opaque part of ours: it has no type, which each block of a
// provider has. It says what the part before it cites, or where a call stood
// that something was said after, and by whom it was made.
type note struct {
	Citations json.RawMessage `json:"citations,omitempty"`
	Call      *int            `json:"call,omitempty"`
	Caller    json.RawMessage `json:"caller,omitempty"`
}

// encode is the note as Part.Provider.
func (n note) encode() json.RawMessage {
	data, _ := httpapi.Encode(map[string]note{"note": n}) // raw values that were decoded before: cannot fail
	return data
}
