package anthropic

import (
	"encoding/json"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A note is an opaque part in journals of earlier versions: the citations of the text before it, or the position and
// the caller of a call.
type note struct {
	partData
	Call *int `json:"call"`
}

// withoutNotes converts a step of an earlier version to the current form: the position of a call is a part, and data of
// a part is in the part.
func withoutNotes(s step.Step) step.Step {
	if !slices.ContainsFunc(s.Parts, func(p step.Part) bool { return noteOf(p) != nil }) {
		return s
	}
	parts, placed := s.Parts, 0
	s.Parts = nil
	for _, p := range parts {
		n := noteOf(p)
		switch last := len(s.Parts) - 1; {
		case n == nil:
			s.Parts = append(s.Parts, p)
		case n.Call != nil && *n.Call == placed: // notes are in the order of the calls
			placed++
			s.Parts = append(s.Parts, step.Part{Kind: step.PartCall, Provider: n.encode()})
		case n.Citations != nil && last >= 0 && s.Parts[last].Kind == step.PartText:
			s.Parts[last].Provider = n.encode()
		}
	}
	return s
}

// noteOf returns the note in a part, or nil. Blocks of providers have a type, notes have none.
func noteOf(p step.Part) *note {
	var b struct {
		Type string `json:"type"`
		Note *note  `json:"note"`
	}
	if p.Kind != step.PartOpaque || json.Unmarshal(p.Provider, &b) != nil || b.Type != "" {
		return nil
	}
	return b.Note
}
