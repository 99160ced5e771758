package anthropic

import (
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A source is where the bytes of an image or a document are: in the request.
// https://platform.claude.com/docs/en/build-with-claude/vision
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
}

// filesOf returns the images and documents of a step.
func (w *writer) filesOf(s step.Step) (list []any) {
	for _, p := range s.Parts {
		if p.File == nil {
			continue
		}
		block := &blockParam{
			Type: "image", Source: &source{Type: "base64", MediaType: p.File.MediaType, Data: w.conversation.Base64(p.File)},
		}
		if p.Kind == step.PartDocument {
			block.Type, block.Title = "document", p.File.BaseName()
		}
		list = append(list, block)
	}
	return list
}

// resultContent returns the content of a tool result: its text, or a list of the text, the
// images and the documents.
func (w *writer) resultContent(s step.Step) any {
	files := w.filesOf(s)
	if files == nil || s.IsError {
		return textOf(s)
	}
	return append([]any{textBlock(textOf(s))}, files...)
}
