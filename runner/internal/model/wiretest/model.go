// Package wiretest supports the tests of both wire formats: networks with one answer, readers that split their input,
// and recorded exchanges with real providers, which are not part of the repository.
package wiretest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Ask is a request for tests of answers.
var Ask = &model.Request{Steps: []step.Step{Says(step.RoleUser, "Hello?")}}

// Says returns a step that is one text.
func Says(role step.Role, text string) step.Step {
	return step.Step{Role: role, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

// WithKey sets the key of a Model.
func WithKey(key string) func(*provider.Options) {
	return func(o *provider.Options) { o.Key = func() (string, error) { return key, nil } }
}

// CheckSources checks that a row of a dialect has an https address, or a note that it has none, and the date on which
// it was read.
func CheckSources(t *testing.T, row string, sources []string, date string) {
	t.Helper()
	if len(sources) == 0 {
		t.Errorf("%s has no source", row)
	}
	for _, s := range sources {
		u, err := url.Parse(s)
		isAddress := err == nil && u.Scheme == "https" && u.Host != "" && u.Path != ""
		if !isAddress && s != httpapi.RecordedAnswers && s != httpapi.NoSource {
			t.Errorf("%s: the source %q is no https address", row, s)
		}
	}
	if _, err := time.Parse(time.DateOnly, date); err != nil {
		t.Errorf("%s: %q is no date, such as 2026-11-28", row, date)
	}
}

// CheckIncomplete checks that an answer is an IncompleteError, with an estimate of
// its usage.
func CheckIncomplete(t *testing.T, r model.Response, err error) {
	t.Helper()
	var incomplete *model.IncompleteError
	if !errors.As(err, &incomplete) || !model.Transient(err) || r.Finish != "" {
		t.Errorf("finish %q, error %v", r.Finish, err)
	}
	if !r.Usage.Estimated || r.Usage.InputTokens == 0 {
		t.Errorf("the usage is not estimated: %+v", r.Usage)
	}
}

// CheckNoKey checks that an error is returned, and that it does not quote the beginning of a key.
func CheckNoKey(t *testing.T, err error, key string) {
	t.Helper()
	if err == nil || strings.Contains(err.Error(), key[:12]) {
		t.Errorf("got %v", err)
	}
}

// CheckPieces checks that decode returns the wanted result for a recorded answer, split in any way.
func CheckPieces[T any](t *testing.T, r Recording, want T, decode func(testing.TB, Recording, io.Reader) (T, error)) {
	t.Helper()
	for _, size := range []int{1, 7, 4096} {
		got, err := decode(t, r, &Chopped{Data: r.Raw, Size: size})
		if err != nil {
			t.Errorf("%s in pieces of %d: %v", r.Name(), size, err)
			continue
		}
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s in pieces of %d: -want +got:\n%s", r.Name(), size, diff)
		}
	}
}

// BenchmarkStream reads an answer of a number of bytes, from the bytes of the network
// to the last delta.
func BenchmarkStream(b *testing.B, m model.Model, size int) {
	b.Helper()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		for _, err := range m.Stream(b.Context(), Ask) {
			if err != nil {
				b.Fatal(err)
			}
		}
	}
}

// BenchmarkCollect measures assembling the same answer.
func BenchmarkCollect(b *testing.B, m model.Model, size int) {
	b.Helper()
	b.SetBytes(int64(size))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := model.Collect(m.Stream(b.Context(), Ask), nil); err != nil {
			b.Fatal(err)
		}
	}
}

// Literals splits a text after any of its UTF-16 units, as servers written in JavaScript or Java do, and returns the
// pieces as JSON strings. A half of a surrogate pair is written as an escape.
func Literals(draw *rand.Rand, text string) []string {
	units := utf16.Encode([]rune(text))
	var pieces []string
	for len(units) > 0 {
		n := 1 + draw.IntN(min(len(units), 4))
		pieces = append(pieces, literal(draw, units[:n]))
		units = units[n:]
	}
	return pieces
}

func literal(draw *rand.Rand, units []uint16) string {
	var out strings.Builder
	for _, u := range units {
		switch {
		case draw.IntN(3) == 0:
			fmt.Fprintf(&out, `\u%04X`, u)
		case draw.IntN(3) == 0 || utf16.IsSurrogate(rune(u)):
			fmt.Fprintf(&out, `\u%04x`, u)
		default:
			quoted, _ := json.Marshal(string(rune(u))) // a string: cannot fail
			out.Write(quoted[1 : len(quoted)-1])
		}
	}
	return `"` + out.String() + `"`
}

// Text returns a random text of letters, signs that JSON escapes, and characters
// beyond the Basic Multilingual Plane.
func Text(draw *rand.Rand) string {
	alphabet := []rune(`aZ0 "\/<>` + "\n\tä日\u2028😀🦀𝄞👩‍💻\U0010ffff")
	text := make([]rune, draw.IntN(24))
	for i := range text {
		text[i] = alphabet[draw.IntN(len(alphabet))]
	}
	return string(text)
}

// mediaTypes are the types of images and documents that requests have.
var mediaTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp", "application/pdf"}

// optional are the members of an image or a document that a request may leave out.
var optional = []string{"detail", "cache_control", "title", "citations"}

// CheckFiles checks that a Model writes images and documents in the form of recorded requests that the provider
// accepted.
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

// withoutBytes removes the parts that differ between files, and reports whether there was a file of a type that is
// sent.
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
