package modeltest

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// recorded returns the response of a handler.
func recorded(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	recorder := httptest.NewRecorder()
	h.ServeHTTP(recorder, r)
	return recorder
}

// send writes a recorded response in pieces of a size.
func send(w http.ResponseWriter, from *httptest.ResponseRecorder, size int) {
	w.Header().Set("Content-Type", from.Header().Get("Content-Type"))
	w.WriteHeader(from.Code)
	for body := from.Body.Bytes(); len(body) > 0; {
		n := min(size, len(body))
		_, _ = w.Write(body[:n])                  // the client went away
		_ = http.NewResponseController(w).Flush() // likewise
		body = body[n:]
	}
}

func (s suite) pieces(t *testing.T) {
	for _, size := range []int{1, 7, 4096} {
		got, err := s.play(t, full, func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { send(w, recorded(next, r), size) })
		})
		if diff := cmp.Diff(s.signed(fullResponse), got); diff != "" || err != nil {
			t.Errorf("in pieces of %d: error %v, -want +got:\n%s", size, err, diff)
		}
	}
}

// brief is a turn with thinking, a text and a call that is short enough to be cut after each byte.
var brief = Turn{Thinking: "Hm: ä.", Text: "I look. ✓", Calls: []Call{{Name: "Ls", Args: json.RawMessage(`{"path":"."}`)}}}

// briefResponse is brief as a [model.Response], without its usage.
var briefResponse = model.Response{
	Parts:  []step.Part{{Kind: step.PartThinking, Text: brief.Thinking}, {Kind: step.PartText, Text: brief.Text}},
	Calls:  []model.Call{{Name: "Ls", Args: `{"path":"."}`}},
	Finish: step.FinishCalls,
}

// cuts ends an answer after each of its bytes as if it were complete, and after some of them by resetting the
// connection, which is slower.
func (s suite) cuts(t *testing.T) {
	ends := map[string]struct {
		stride int64
		end    func(http.ResponseWriter)
	}{
		"by an end":    {1, func(http.ResponseWriter) {}},
		"by a hang-up": {7, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }},
	}
	for name, how := range ends {
		t.Run(name, func(t *testing.T) {
			c := cutter{script: NewServer(s.script(brief)), end: how.end}
			server := httptest.NewServer(&c)
			t.Cleanup(server.Close)
			m := s.open(t, server.URL+"/v1")
			whole := 0
			for last := false; !last; c.cut.Add(how.stride) {
				if size := c.size.Load(); size > 0 && c.cut.Load() >= size {
					c.cut.Store(size) // the whole of it, whatever the stride is
					last = true
				}
				got, err := model.Collect(m.Stream(t.Context(), ask()), nil)
				if err == nil {
					whole++
				}
				s.checkCut(t, c.cut.Load(), got, err)
			}
			if size := c.size.Load(); whole == 0 || int64(whole) > size/how.stride/2 {
				t.Errorf("%d prefixes of an answer of %d bytes were taken for whole", whole, size)
			}
		})
	}
}

// A cutter serves a script up to a number of bytes.
type cutter struct {
	script    *Server
	end       func(http.ResponseWriter)
	cut, size atomic.Int64
}

func (c *cutter) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := recorded(c.script, r)
	c.size.Store(int64(answer.Body.Len()))
	answer.Body.Truncate(int(min(c.cut.Load(), c.size.Load())))
	send(w, answer, answer.Body.Len())
	c.end(w)
}

// checkCut expects the whole answer, or a transient error with the usage of the try.
func (s suite) checkCut(t *testing.T, cut int64, got model.Response, err error) {
	t.Helper()
	if err != nil {
		if !model.Transient(err) || got.Finish != "" {
			t.Errorf("cut at %d: finish %q, error %v", cut, got.Finish, err)
		}
		if cut > 0 && got.Usage.InputTokens == 0 {
			t.Errorf("cut at %d: what was spent is not charged", cut)
		}
		return
	}
	got = s.plain(got)
	got.Usage = step.Usage{} // comes last, and is estimated where it was cut
	if diff := cmp.Diff(s.signed(briefResponse), got); diff != "" {
		t.Errorf("cut at %d is taken for whole: -want +got:\n%s", cut, diff)
	}
}

// roundTrip sends a session with every kind of step to a Server, which refuses what strict providers refuse, and checks
// the request.
func (s suite) roundTrip(t *testing.T) {
	script := NewServer(s.script(Turn{}, Turn{Text: "Done: {{.LastToolResult}}"}))
	server := httptest.NewServer(script)
	t.Cleanup(server.Close)
	req := ask()
	req.Steps = append(req.Steps,
		step.Step{Seq: 2, Role: step.RoleAssistant, Finish: step.FinishCalls, Calls: []step.Call{
			{ID: "s2c1", Name: "Read", Args: json.RawMessage(`{"path":"a"}`)},
			{ID: "s2c2", Name: "no such tool!", Args: json.RawMessage(`"{\"path\""`)},
		}},
		result(4, "s2c2", "Error: there is no such tool."),
		result(3, "s2c1", ""),
	)
	got, err := model.Collect(s.open(t, server.URL+"/v1").Stream(t.Context(), req), nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Parts) != 1 || got.Parts[0].Text != "Done: Error: there is no such tool." {
		t.Errorf("the answer is %+v", got.Parts)
	}
	sent := script.Requests()[0]
	if len(sent.Tools) != 1 || sent.Tools[0].Function.Name != "Read" {
		t.Errorf("tools sent: %+v", sent.Tools)
	}
	want := []string{"system", "user", "assistant", "tool", "tool"}
	roles := []string{}
	for _, m := range sent.Messages {
		roles = append(roles, m.Role)
	}
	if diff := cmp.Diff(want, roles); diff != "" {
		t.Errorf("roles sent: -want +got:\n%s", diff)
	}
}

// sentBack records an answer with everything in it and sends it back with its results.
func (s suite) sentBack(t *testing.T) {
	script := NewServer(s.script(full, Turn{Text: "Done."}))
	server := httptest.NewServer(script)
	t.Cleanup(server.Close)
	m := s.open(t, server.URL+"/v1")
	req := ask()
	answer, err := model.Collect(m.Stream(t.Context(), req), nil)
	if err != nil {
		t.Fatal(err)
	}
	recorded := step.Step{Seq: 2, Role: step.RoleAssistant, Finish: answer.Finish, Parts: answer.Parts}
	for i, c := range answer.Calls {
		recorded.Calls = append(recorded.Calls, step.Call{ID: step.CallID("", 2, i+1), Name: c.Name, Args: json.RawMessage(c.Args)})
	}
	req.Steps = append(req.Steps, recorded, result(3, "s2c1", "a"), result(4, "s2c2", "b"))
	if got, err := model.Collect(m.Stream(t.Context(), req), nil); err != nil || got.Finish != step.FinishStop {
		t.Errorf("finish %q, error %v", got.Finish, err)
	}
}

func result(seq int64, call, text string) step.Step {
	return step.Step{Seq: seq, Role: step.RoleTool, CallID: call, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

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
