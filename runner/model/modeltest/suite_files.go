package modeltest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// contents are files by their digest.
type contents map[string][]byte

// ReadFile implements [model.Files].
func (c contents) ReadFile(digest string) ([]byte, error) {
	if data, ok := c[digest]; ok {
		return data, nil
	}
	return nil, errors.New("no such file")
}

// The files of the suite: only the beginnings, which determine their types.
var (
	png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR picture")
	pdf = []byte("%PDF-1.7\n%\xe2\xe3\xcf\xd3\npages")
)

// add adds a file and returns a part that names it.
func (c contents) add(kind step.PartKind, mediaType, name string, data []byte) step.Part {
	sum := sha256.Sum256(data)
	f := &step.File{Digest: hex.EncodeToString(sum[:]), MediaType: mediaType, Name: name, Size: int64(len(data))}
	if kind == step.PartImage {
		f.Width, f.Height = 800, 600
	}
	c[f.Digest] = data
	return step.Part{Kind: kind, File: f}
}

// withFiles returns a session whose prompt, tool result and failed result have files. The file of the last result no
// longer exists.
func withFiles() *model.Request {
	c := contents{}
	req := ask()
	req.Files = c
	req.CacheKey = "session"
	image := c.add(step.PartImage, "image/png", "/workspace/chart.png", png)
	document := c.add(step.PartDocument, "application/pdf", "/workspace/paper.pdf", pdf)
	gone := c.add(step.PartImage, "image/png", "/workspace/gone.png", append(png, 1))
	delete(c, gone.File.Digest)
	req.Steps[0].Parts = append(req.Steps[0].Parts, image)
	shown, failed, lost := result(3, "s2c1", "Two files."), result(4, "s2c2", "It failed."), result(5, "s2c3", "One file.")
	shown.Parts = append(shown.Parts, image, document)
	failed.Parts, failed.IsError = append(failed.Parts, image), true
	lost.Parts = append(lost.Parts, gone)
	calls := step.Step{Seq: 2, Role: step.RoleAssistant, Finish: step.FinishCalls}
	for _, id := range []string{"s2c1", "s2c2", "s2c3"} {
		calls.Calls = append(calls.Calls, step.Call{ID: id, Name: "Read", Args: json.RawMessage(`{"path":"a"}`)})
	}
	req.Steps = append(req.Steps, calls, shown, failed, lost,
		step.Step{Seq: 6, Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: "Go on."}}})
	return req
}

// files sends images and documents, and checks the request.
func (s suite) files(t *testing.T) {
	script := NewServer(s.script(Turn{}, Turn{Text: "Seen."}))
	server := httptest.NewServer(script)
	t.Cleanup(server.Close)
	if _, err := model.Collect(s.open(t, server.URL+"/v1").Stream(t.Context(), withFiles()), nil); err != nil {
		t.Fatal(err)
	}
	sent := script.Requests()[0]
	image, document := File{"image/png", png}, File{"application/pdf", pdf}
	if diff := cmp.Diff([]File{image, image, document, image}, sent.files()); diff != "" {
		t.Errorf("files sent: -want +got:\n%s", diff)
	}
	const line = `[image /workspace/gone.png, 800x600, image/png: not shown, because its bytes are no longer there]`
	if all := sent.texts(); !strings.Contains(all, line) || !strings.Contains(all, "Go on.") {
		t.Errorf("the texts sent are %q", all)
	}
}

// texts joins the texts of all messages.
func (r Request) texts() string {
	var all strings.Builder
	for _, m := range r.Messages {
		if m.Content != nil {
			all.WriteString(*m.Content + "\n")
		}
	}
	return all.String()
}

// refusedFiles sends files to a provider that accepts none, with different error messages.
func (s suite) refusedFiles(t *testing.T) {
	for _, message := range []string{
		"this model does not support image input", "unknown variant `image_url`, expected `text`", "Bad request", "something is wrong",
	} {
		played := s.script(Turn{}, Turn{Text: "Seen."})
		played.RefusesFiles = message
		script := NewServer(played)
		server := httptest.NewServer(script)
		t.Cleanup(server.Close)
		m := s.open(t, server.URL+"/v1")
		var repairs []string
		for range 2 {
			_, err := model.Collect(m.Stream(t.Context(), withFiles()), func(d model.Delta) {
				if d.Repair != nil && d.Repair.Kind == model.RepairFiles {
					repairs = append(repairs, d.Because)
				}
			})
			if err != nil {
				t.Fatalf("%q: %v", message, err)
			}
		}
		if len(repairs) != 1 || !strings.Contains(repairs[0], message) {
			t.Errorf("%q: the repairs are for %q", message, repairs)
		}
		requests := script.Requests()
		last := requests[len(requests)-1]
		const line = "[document /workspace/paper.pdf, application/pdf: not shown, because the model provider refused it. Convert it to a small PNG, or go on without it]"
		if all := last.texts(); len(last.files()) != 0 || !strings.Contains(all, line) {
			t.Errorf("%q: %d files are sent, and the texts %q", message, len(last.files()), all)
		}
	}
}
