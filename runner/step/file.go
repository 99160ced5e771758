package step

import (
	"fmt"
	"path"
	"slices"
)

// A File is an image or a document of a session. Its bytes are not in the step: they are kept
// under the digest.
type File struct {
	// Digest is the SHA-256 of the bytes, in hex.
	Digest string `json:"digest"`
	// MediaType is image/png, image/jpeg, image/gif, image/webp or application/pdf, as the
	// bytes have it.
	MediaType string `json:"mediaType"`
	// Size is in bytes.
	Size int64 `json:"size"`
	// Width and Height are the size of an image, in pixels.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	// Name is the path of the file, for users and models.
	Name string `json:"name,omitempty"`
}

// Line describes a file of a kind in brackets, with a reason why it is not shown; empty: it is.
func (f *File) Line(kind PartKind, why string) string {
	text := "[" + string(kind)
	if f.Name != "" {
		text += " " + f.Name
	}
	if f.Width > 0 {
		text += fmt.Sprintf(", %dx%d", f.Width, f.Height)
	}
	text += ", " + f.MediaType
	if why != "" {
		text += ": " + why
	}
	return text + "]"
}

// BaseName returns the last element of the name of a file, which is never empty.
func (f *File) BaseName() string {
	if name := path.Base(f.Name); name != "." && name != "/" {
		return name
	}
	return "document"
}

// HasFiles reports whether a step has an image or a document.
func (s Step) HasFiles() bool {
	return slices.ContainsFunc(s.Parts, func(p Part) bool { return p.File != nil })
}

// Files returns how many images and documents a step has.
func (s Step) Files() (n int) {
	for _, p := range s.Parts {
		if p.File != nil {
			n++
		}
	}
	return n
}

// WithoutFiles returns the step with a text instead of each file for which why returns a reason. The step itself does
// not change.
func (s Step) WithoutFiles(why func(p Part) string) Step {
	if !s.HasFiles() {
		return s
	}
	parts := slices.Clone(s.Parts)
	for i, p := range parts {
		if p.File == nil {
			continue
		}
		reason := why(p)
		if reason == "" {
			continue
		}
		text := p.File.Line(p.Kind, reason)
		if i > 0 {
			text = "\n" + text
		}
		parts[i] = Part{Kind: PartText, Text: text}
	}
	s.Parts = parts
	return s
}
