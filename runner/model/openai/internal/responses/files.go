package responses

import (
	"cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// An inputPart is a part of a message of the user or of a tool's output: a text, an image or a
// document. https://platform.openai.com/docs/api-reference/responses/create
type inputPart struct {
	Type     string `json:"type"`
	Text     string `json:"text,omitempty"`
	Detail   string `json:"detail,omitempty"` // of an image; some servers require it
	ImageURL string `json:"image_url,omitempty"`
	FileName string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
}

// content returns the content of a step of the user or a tool: its text, never empty, or a list of the text, the images
// and the documents.
func (w *writer) content(s step.Step) any {
	text := cmp.Or(s.Text(), emptyText)
	if !s.HasFiles() {
		return text
	}
	parts := []inputPart{{Type: "input_text", Text: text}}
	for _, p := range s.Parts {
		switch {
		case p.File == nil:
		case p.Kind == step.PartDocument:
			parts = append(parts, inputPart{Type: "input_file", FileName: p.File.BaseName(), FileData: w.conversation.DataURL(p.File)})
		default:
			parts = append(parts, inputPart{Type: "input_image", Detail: "auto", ImageURL: w.conversation.DataURL(p.File)})
		}
	}
	return parts
}
