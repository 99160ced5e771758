package responses_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/model/router"
	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// shapes are the items of answers: reasoning, messages and calls in all orders that OpenAI has.
var shapes = []string{"r c c", "r m c c", "r r m c", "r m r c c", "c r c", "r m m c", "m c r c"}

// A standIn plays OpenAI: it remembers each item that it sent, and refuses what differs.
type standIn struct {
	t *testing.T

	mu      sync.Mutex
	turns   int
	busy    bool               // answers 503
	answers [][]map[string]any // the items of each answer
	refused []string
	seen    map[string]int // the kinds of items that came back
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.busy {
		http.Error(w, `{"error":{"message":"overloaded"}}`, http.StatusServiceUnavailable)
		return
	}
	var req map[string]any
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		s.t.Error(err)
	}
	if err := s.check(req); err != nil {
		s.refused = append(s.refused, err.Error())
		w.WriteHeader(http.StatusBadRequest)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%q,"type":"invalid_request_error","param":"input"}}`, err)
		return
	}
	items := answer(s.turns)
	s.turns++
	s.answers = append(s.answers, items)
	w.Header().Set("Content-Type", "text/event-stream")
	for i, item := range items {
		for _, kind := range []string{"added", "done"} {
			data, _ := json.Marshal(map[string]any{"type": "response.output_item." + kind, "output_index": i, "item": item})
			_, _ = fmt.Fprintf(w, "data: %s\n\n", data)
		}
	}
	_, _ = fmt.Fprint(w, `data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":9,"output_tokens":9}}}`+"\n\n")
}

// answer is the n-th answer.
func answer(n int) []map[string]any {
	var items []map[string]any
	for i, kind := range strings.Fields(shapes[n%len(shapes)]) {
		id := fmt.Sprintf("%d_%d", n, i)
		switch kind {
		case "r":
			items = append(items, map[string]any{"type": "reasoning", "id": "rs_" + id, "encrypted_content": "e" + id, "summary": []any{}})
		case "m":
			items = append(items, map[string]any{
				"type": "message", "id": "msg_" + id, "role": "assistant", "status": "completed", "phase": "commentary",
				"content": []any{map[string]any{"type": "output_text", "text": "said " + id, "annotations": []any{}}},
			})
		case "c":
			items = append(items, map[string]any{
				"type": "function_call", "id": "fc_" + id, "status": "completed", "call_id": "call_" + id, "name": "Ls", "arguments": `{"path":"` + id + `"}`,
			})
		}
	}
	return items
}

// check refuses a request that OpenAI refuses, and more: any answer that did not come back as it
// was sent, whole and in its order.
func (s *standIn) check(req map[string]any) error {
	if req["store"] != false || req["previous_response_id"] != nil {
		return fmt.Errorf("store is %v, previous_response_id %v", req["store"], req["previous_response_id"])
	}
	list, _ := req["input"].([]any)
	for len(list) > 0 {
		item := list[0].(map[string]any)
		answer := s.answerOf(item)
		if answer == nil {
			if item["type"] == "reasoning" {
				return fmt.Errorf("the encrypted content %v could not be verified", item["encrypted_content"])
			}
			list = list[1:]
			continue
		}
		if len(list) < len(answer) {
			return fmt.Errorf("an answer of %d items came back with %d", len(answer), len(list))
		}
		for i, sent := range answer {
			if err := same(sent, list[i].(map[string]any)); err != nil {
				return fmt.Errorf("item %d of an answer: %w", i, err)
			}
			s.seen[str(sent["type"])]++
		}
		list = list[len(answer):]
	}
	return nil
}

// answerOf is the answer that begins with an item; nil if there is none.
func (s *standIn) answerOf(item map[string]any) []map[string]any {
	for _, sent := range s.answers {
		if same(sent[0], item) == nil {
			return sent
		}
	}
	return nil
}

// same compares an item that was sent with the one that came back.
func same(sent, back map[string]any) error {
	if back["id"] != nil {
		return fmt.Errorf("Item with id '%v' not found. Items are not persisted when `store` is set to false", back["id"])
	}
	if sent["type"] != back["type"] {
		return fmt.Errorf("a %v was provided without its required following item, a %v", back["type"], sent["type"])
	}
	fields := []string{"phase", "encrypted_content", "call_id", "name", "arguments"}
	for _, field := range fields {
		if sent[field] != back[field] {
			return fmt.Errorf("%s of a %v is %v, not %v", field, sent["type"], back[field], sent[field])
		}
	}
	if sent["type"] == "message" {
		want, got := sent["content"].([]any)[0].(map[string]any)["text"], back["content"].([]any)[0].(map[string]any)["text"]
		if want != got {
			return fmt.Errorf("the text is %v, not %v", got, want)
		}
	}
	return nil
}

// A session is one that is followed over turns, resumes, compactions and fallbacks.
type session struct {
	t       *testing.T
	standIn *standIn
	url     string
	now     time.Time
	model   model.Model
	steps   []step.Step
	seq     int64
	by      map[string]int // turns by the Model that answered
}

// open opens the Models, as the runner of a new attempt does.
func (s *session) open() {
	s.t.Helper()
	gpt, err := openai.New(openai.Options{Provider: openai.ProviderOpenAI, API: provider.APIResponses, Name: "gpt", Model: "gpt-5.6", Endpoint: s.url})
	if err != nil {
		s.t.Fatal(err)
	}
	other, err := openai.New(openai.Options{
		Provider: openai.ProviderOpenAICompatible, Name: "other", Model: "o", Endpoint: "http://other/v1",
		Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
			var sent bytes.Buffer
			_, _ = sent.ReadFrom(r.Body)
			if regexp.MustCompile(`encrypted_content|phase|"call_\d`).MatchString(sent.String()) {
				s.t.Errorf("the other Model reads data of the first: %s", sent.String())
			}
			return wiretest.Answering(200, "text/event-stream", `data: {"choices":[{"index":0,"delta":{"reasoning_content":"Hm.","content":"I help.",`+
				`"tool_calls":[{"index":0,"id":"x","function":{"name":"Ls","arguments":"{}"}},{"index":1,"id":"y","function":{"name":"Ls","arguments":"{}"}}]},`+
				`"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":9,"completion_tokens":9}}`+"\n\ndata: [DONE]\n\n")(r)
		}),
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.model = router.New([]router.Target{{Name: "gpt", Model: gpt}, {Name: "other", Model: other}},
		func() time.Time { return s.now })
}

// resume writes the session into a journal, and reads it in a new process.
func (s *session) resume() {
	data, err := json.Marshal(s.steps)
	if err != nil {
		s.t.Fatal(err)
	}
	s.steps = nil
	if err := json.Unmarshal(data, &s.steps); err != nil {
		s.t.Fatal(err)
	}
	s.open()
}

func (s *session) add(st step.Step) {
	s.seq++
	st.Seq = s.seq
	s.steps = append(s.steps, st)
}

// turn asks for one answer and records it with the results of its calls.
func (s *session) turn() {
	s.t.Helper()
	s.now = s.now.Add(10 * time.Minute)
	r, err := model.Collect(s.model.Stream(s.t.Context(), &model.Request{
		System: "Be brief.", Steps: s.steps, CacheKey: "run", Params: model.Params{Reasoning: model.ReasoningHigh},
		Tools: []step.Tool{{Name: "Ls", Input: json.RawMessage(`{"type":"object"}`)}},
	}), nil)
	if err != nil || r.Finish != step.FinishCalls {
		s.t.Fatalf("step %d: finish %q, %v; refused: %q", s.seq, r.Finish, err, s.standIn.refused)
	}
	s.by[r.Model]++
	st := recorded(s.seq+1, r.Model, r)
	s.add(st)
	found := results(st)
	slices.Reverse(found) // they end in any order
	for _, f := range found {
		s.add(f)
	}
}

// A session of 30 turns with reasoning and parallel calls goes on over resumes, compactions and
// a fallback to another Model and back: each item comes back as it was sent.
func TestALongSessionIsSentBackAsItWas(t *testing.T) {
	p := &standIn{t: t, seen: map[string]int{}}
	server := httptest.NewServer(p)
	t.Cleanup(server.Close)
	s := &session{t: t, standIn: p, url: server.URL + "/v1", now: time.Unix(0, 0), by: map[string]int{}}
	s.open()
	s.add(wiretest.Says(step.RoleUser, "Look at all files."))
	for n := range 30 {
		p.mu.Lock()
		p.busy = n >= 12 && n < 15
		p.mu.Unlock()
		s.turn()
		switch n {
		case 5, 13, 20:
			s.resume()
		case 8:
			s.steps = compaction.Apply(s.steps, compaction.Cut{Through: s.steps[6].Seq, Clear: true}, "")
		case 18, 25:
			cut, ok := compaction.Plan(s.steps, 1000, 900)
			if !ok {
				t.Fatal("there is nothing to compact")
			}
			s.steps = compaction.Apply(s.steps, compaction.Cut{Through: cut.Through}, "Files were listed.")
		case 22:
			s.add(wiretest.Says(step.RoleUser, "Go on."))
		}
	}
	if len(p.refused) > 0 {
		t.Errorf("refused: %q", p.refused)
	}
	if want := map[string]int{"gpt": 27, "other": 3}; !maps.Equal(want, s.by) {
		t.Errorf("turns by Model: %v, want %v", s.by, want)
	}
	for _, kind := range []string{"reasoning", "message", "function_call"} {
		if p.seen[kind] < 100 {
			t.Errorf("%d items of type %s came back", p.seen[kind], kind)
		}
	}
}

// The stand-in of the test before refuses what OpenAI refuses.
func TestWhatTheProviderRefuses(t *testing.T) {
	cases := map[string]func([]any) []any{
		"nothing":          func(items []any) []any { return items },
		"an id":            func(items []any) []any { items[0].(map[string]any)["id"] = "rs_3_0"; return items },
		"no successor":     func(items []any) []any { return items[:1] },
		"another order":    func(items []any) []any { items[1], items[2] = items[2], items[1]; return items },
		"no phase":         func(items []any) []any { delete(items[1].(map[string]any), "phase"); return items },
		"a call left out":  func(items []any) []any { return items[:4] },
		"another argument": func(items []any) []any { items[4].(map[string]any)["arguments"] = "{}"; return items },
		"foreign content":  func(items []any) []any { items[0].(map[string]any)["encrypted_content"] = "x"; return items },
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			p := &standIn{t: t, seen: map[string]int{}}
			p.answers = append(p.answers, answer(3)) // r m r c c
			var items []any
			for _, item := range answer(3) {
				delete(item, "id")
				items = append(items, item)
			}
			if err := p.check(map[string]any{"store": false, "input": change(items)}); (err == nil) != (name == "nothing") {
				t.Errorf("got %v", err)
			}
		})
	}
}
