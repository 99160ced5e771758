package openai

import (
	"slices"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// filesOfResults is the text before the images and documents of tool results.
const filesOfResults = "The files of the tool results above:"

const typeText = "text"

// A contentPart is a part of the content of a message: a text, an image or a document.
// https://platform.openai.com/docs/api-reference/chat/create
type contentPart struct {
	Type         string        `json:"type"`
	Text         string        `json:"text,omitempty"`
	ImageURL     *imageURL     `json:"image_url,omitempty"`
	File         *fileData     `json:"file,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"` // the provider caches the prompt up to it
}

type imageURL struct {
	URL string `json:"url"`
}

type fileData struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// filesOf returns the images and documents of a step, each behind a line that names it.
func (w *writer) filesOf(s step.Step) (parts []contentPart) {
	for _, p := range s.Parts {
		if p.File == nil {
			continue
		}
		part := contentPart{Type: "image_url", ImageURL: &imageURL{URL: w.conversation.DataURL(p.File)}}
		if p.Kind == step.PartDocument {
			part = contentPart{Type: "file", File: &fileData{Name: p.File.BaseName(), Data: w.conversation.DataURL(p.File)}}
		}
		parts = append(parts, contentPart{Type: typeText, Text: p.File.Line(p.Kind, "")}, part)
	}
	return parts
}

// joinContent returns the content of a message with a text and files added. content is nil for an empty message, a
// string, or parts. Without any files the result is a string.
func joinContent(content any, text string, files []contentPart) any {
	before, isText := content.(string)
	if isText {
		text = before + "\n\n" + text
	}
	parts, _ := content.([]contentPart)
	if len(parts)+len(files) == 0 {
		return text
	}
	return append(append(slices.Clip(parts), contentPart{Type: typeText, Text: text}), files...)
}

// markLastText sets cache_control on the last text of a content, which may be nil.
func markLastText(content any) []contentPart {
	text, _ := content.(string)
	parts, ok := content.([]contentPart)
	if !ok {
		parts = []contentPart{{Type: typeText, Text: text}}
	}
	for i := len(parts) - 1; i >= 0; i-- {
		if parts[i].Type == typeText {
			parts[i].CacheControl = &cacheControl{Type: "ephemeral"}
			break
		}
	}
	return parts
}

// isMarked reports whether a content has cache_control.
func isMarked(content any) bool {
	parts, _ := content.([]contentPart)
	return slices.ContainsFunc(parts, func(p contentPart) bool { return p.CacheControl != nil })
}
