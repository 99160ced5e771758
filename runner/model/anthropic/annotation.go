package anthropic

import (
	"encoding/json"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// An annotation is an opaque part that this package writes: it has no type, which
// each block of a provider has. It holds the citations of the part before it, or the
// position of a call that other content follows, and who made the call.
type annotation struct {
	Citations json.RawMessage `json:"citations,omitempty"`
	Call      *int            `json:"call,omitempty"`
	Caller    json.RawMessage `json:"caller,omitempty"`
}

// encode returns the annotation as Part.Provider. Journals have it as "note".
func (n annotation) encode() json.RawMessage {
	data, _ := httpapi.Encode(map[string]annotation{"note": n}) // raw values that were decoded before: cannot fail
	return data
}
