package anthropic_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// FuzzStream holds the reader to what it promises of any bytes: it ends, it
// never tells of a success that nothing in the bytes tells of, what it keeps can
// be sent back, and the pieces in which the bytes come do not matter.
func FuzzStream(f *testing.F) {
	f.Add([]byte(hi))
	f.Add([]byte(begin + thinking(0, "Hm.", "sig") + whole(1, search) + tool(2, "now", `{"a":1}`) + end("tool_use")))
	f.Add([]byte(begin + text(0, "Hi") + end("pause_turn")))
	f.Add([]byte(begin + whole(0, `{"type":"redacted_thinking","data":"x"}`) + end("max_tokens")))
	f.Add([]byte("event: error\ndata: " + refusal("overloaded_error", "Overloaded") + "\n\n"))
	f.Add([]byte(`{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`))
	f.Add([]byte(blockDelta(0, `{"type":"text_delta","text":"\u00e4\ud83d\ude00"}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		r := wiretest.Recording{Status: 200, Headers: map[string][]string{"Content-Type": {"text/event-stream"}}}
		got, err := decode(t, r, bytes.NewReader(data))
		again, errAgain := decode(t, r, &wiretest.Chopped{Data: data, Size: 3})
		if diff := gocmp.Diff(got, again); diff != "" || (err == nil) != (errAgain == nil) {
			t.Fatalf("in pieces: %v and %v, -whole +pieces:\n%s", err, errAgain, diff)
		}
		if err != nil {
			if got.Finish != "" {
				t.Fatalf("finish %q beside %v", got.Finish, err)
			}
			return
		}
		if got.Finish == "" || !tellsOfAnEnd(data) {
			t.Fatalf("a success that nobody told of: %+v", got)
		}
		sendBack(t, data)
	})
}

// tellsOfAnEnd reports whether bytes may say that an answer ended: a document
// does by its own end, and a field's name may be written in several ways.
func tellsOfAnEnd(data []byte) bool {
	return bytes.HasPrefix(bytes.TrimLeft(data, " \t\r\n\ufeff"), []byte("{")) ||
		bytes.Contains(bytes.ToLower(data), []byte("top")) || bytes.Contains(data, []byte(`\u`))
}

// sendBack sends an answer back, as a step of the session.
func sendBack(t *testing.T, data []byte) {
	t.Helper()
	response, err := collect(t, streaming(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	s := step.Step{Seq: 2, Role: step.RoleAssistant, Model: "main", Parts: response.Parts}
	req := &model.Request{Steps: []step.Step{wiretest.Says(step.RoleUser, "Hello?"), s}}
	for i, c := range response.Calls {
		id := step.CallID("", 2, i+1)
		args, _ := json.Marshal(c.Args) // as the engine records what it cannot parse
		req.Steps[1].Calls = append(req.Steps[1].Calls, call(id, c.Name, string(args)))
		req.Steps = append(req.Steps, result(id, "done"))
	}
	body := written(t, req)
	if !json.Valid([]byte(body)) || strings.Count(body, cacheMark) > 4 {
		t.Fatalf("sent back as %s", body)
	}
}
