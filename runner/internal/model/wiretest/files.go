package wiretest

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// mediaTypes are the types of images and documents that requests have.
var mediaTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}

// optional are the members of an image or a document that a request may leave out.
var optional = []string{"detail", "cache_control", "title", "citations"}

// CheckFiles checks that a Model writes images and documents into requests in the form in which
// recorded requests had them, which the provider accepted.
func CheckFiles(t *testing.T, kind string, open func(network http.RoundTripper) model.Model) {
	t.Helper()
	var body []byte
	m := open(RoundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		return nil, errors.New("no answer")
	}))
	req := &model.Request{Files: noBytes{}}
	for i, mediaType := range mediaTypes {
		s := Says(step.RoleUser, "Look.")
		s.Seq = int64(i + 1)
		file := step.Part{Kind: step.PartImage, File: &step.File{MediaType: mediaType, Digest: mediaType, Name: "a"}}
		if mediaType == "application/pdf" {
			file.Kind = step.PartDocument
		}
		s.Parts = append(s.Parts, file)
		req.Steps = append(req.Steps, s)
	}
	_, _ = model.Collect(m.Stream(t.Context(), req), nil) // it has no answer
	written := fileForms(t, body)
	if len(written) != len(mediaTypes) {
		t.Errorf("%d forms are written: %q", len(written), written)
	}
	accepted := map[string]int{}
	for _, r := range Recordings(t, kind) {
		if r.Status != http.StatusOK {
			continue
		}
		for _, form := range fileForms(t, r.Req) {
			accepted[form]++
		}
	}
	if len(accepted) == 0 {
		t.Error("no recorded request has an image or a document")
	}
	for form, n := range accepted {
		if !slices.Contains(written, form) {
			t.Errorf("%d recorded requests have %s, and written are %q", n, form, written)
		}
	}
}

// noBytes has empty files.
type noBytes struct{}

// ReadFile implements [model.Files].
func (noBytes) ReadFile(string) ([]byte, error) { return nil, nil }

// fileForms returns the forms of the images and documents with bytes in the body of a request, each
// once: their JSON without the bytes, the names and optional members.
func fileForms(t *testing.T, body []byte) (forms []string) {
	t.Helper()
	var value any
	if len(body) == 0 || json.Unmarshal(body, &value) != nil {
		return nil
	}
	for _, found := range fileObjects(value) {
		raw, err := json.Marshal(found)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(forms, string(raw)) {
			forms = append(forms, string(raw))
		}
	}
	return forms
}

// fileObjects returns the objects below a value that are images or documents with bytes.
func fileObjects(value any) (found []map[string]any) {
	switch v := value.(type) {
	case []any:
		for _, each := range v {
			found = append(found, fileObjects(each)...)
		}
	case map[string]any:
		if kind, _ := v["type"].(string); slices.Contains([]string{"image", "document", "image_url", "file", "input_image", "input_file"}, kind) && withoutBytes(v) {
			return []map[string]any{v}
		}
		for _, each := range v {
			found = append(found, fileObjects(each)...)
		}
	}
	return found
}

// withoutBytes removes what differs between files, and reports whether there were bytes of a type
// that is sent.
func withoutBytes(object map[string]any) (had bool) {
	for _, name := range optional {
		delete(object, name)
	}
	if mediaType, _ := object["media_type"].(string); slices.Contains(mediaTypes, mediaType) && object["type"] == "base64" {
		object["data"], had = "", true
	}
	for name, value := range object {
		switch v := value.(type) {
		case map[string]any:
			had = withoutBytes(v) || had
		case string:
			if name == "filename" {
				object[name] = ""
			}
			for _, mediaType := range mediaTypes {
				if start := "data:" + mediaType + ";base64,"; strings.HasPrefix(v, start) {
					object[name], had = start, true
				}
			}
		}
	}
	return had
}
