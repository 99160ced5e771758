package openai_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A summary is what two decoders must agree on.
type summary struct {
	Text, Thinking string
	Calls          []model.Call
	Finish         step.Finish
	Unclear        string // no recorded reason is
	In, Out, Read  int64
}

// decode returns the summary of a recorded answer with the given body.
func decode(t testing.TB, r wiretest.Recording, body io.Reader) (summary, error) {
	t.Helper()
	m, err := openai.New(openai.Options{
		Provider: openai.ProviderOpenAICompatible, Model: "m", Endpoint: "http://endpoint/v1",
		Transport: r.Served(body),
	})
	if err != nil {
		t.Fatal(err)
	}
	response, err := model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
	whole := summary{
		Text: text(response, step.PartText), Thinking: text(response, step.PartThinking), Finish: response.Finish, Unclear: response.UnclearReason,
		In: response.Usage.InputTokens, Out: response.Usage.OutputTokens, Read: response.Usage.CacheReadTokens,
	}
	if response.Usage.Estimated { // the recorded server did not tell
		whole.In, whole.Out, whole.Read = 0, 0, 0
	}
	for _, c := range response.Calls {
		whole.Calls = append(whole.Calls, model.Call{Name: c.Name, Args: wiretest.CanonicalJSON(c.Args)})
	}
	return whole, err
}

func TestRecordedAnswersAreReadWhole(t *testing.T) {
	decoded := map[string]int{}
	for _, r := range wiretest.Recordings(t, "chat") {
		if r.Status != http.StatusOK {
			continue
		}
		want := decodeReference(t, r)
		wiretest.CheckPieces(t, r, want, decode)
		decoded[map[bool]string{true: "streamed", false: "plain"}[r.Stream]]++
	}
	t.Logf("decoded %d streamed and %d plain answers", decoded["streamed"], decoded["plain"])
}

// A prefix of an answer is the whole answer or an error, wherever it ends.
func TestNoPrefixOfARecordedAnswerIsTakenForAnother(t *testing.T) {
	prefixes, whole := 0, 0
	for _, r := range wiretest.Recordings(t, "chat") {
		if r.Status != http.StatusOK {
			continue
		}
		want := decodeReference(t, r)
		want.In, want.Out, want.Read = 0, 0, 0 // usage comes last
		for end := len(r.Raw) - 1; end >= 0; end -= r.Stride() {
			prefixes++
			got, err := decode(t, r, bytes.NewReader(r.Raw[:end]))
			if err != nil {
				if !model.Transient(err) {
					t.Errorf("%s cut at %d: %v is not transient", r.Name(), end, err)
				}
				continue
			}
			whole++
			got.In, got.Out, got.Read = 0, 0, 0
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s cut at %d is taken for whole: -want +got:\n%s", r.Name(), end, diff)
			}
		}
	}
	t.Logf("%d prefixes, of which %d hold a whole answer", prefixes, whole)
}

func TestRecordedErrorsAreTyped(t *testing.T) {
	for _, r := range wiretest.Recordings(t, "chat") {
		if r.Status == http.StatusOK {
			continue
		}
		_, err := decode(t, r, bytes.NewReader(r.Raw))
		status, message := 0, ""
		if bad, ok := errors.AsType[*model.BadRequestError](err); ok {
			status, message = bad.Status, bad.Message
		} else if unauthorized, ok := errors.AsType[*model.UnauthorizedError](err); ok {
			status, message = unauthorized.Status, unauthorized.Message
		}
		if status != r.Status || message == "" {
			t.Errorf("%s: got %#v", r.Name(), err)
		}
	}
}

// decodeReference decodes an answer with nothing that the adapter uses: generic
// values, and the simplest rules that the recordings obey.
func decodeReference(t *testing.T, r wiretest.Recording) summary {
	t.Helper()
	var docs [][]byte
	if r.Stream {
		for line := range bytes.Lines(r.Raw) {
			data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
			if ok && !bytes.Contains(data, []byte("[DONE]")) {
				docs = append(docs, data)
			}
		}
	} else {
		docs = [][]byte{r.Raw}
	}
	w := referenceDecoder{streamed: r.Stream, args: map[string]string{}, names: map[string]string{}}
	for _, doc := range docs {
		var v map[string]any
		if err := json.Unmarshal(doc, &v); err != nil {
			t.Fatalf("%s: %v", r.Name(), err)
		}
		w.addEvent(v)
	}
	return w.result()
}

// A referenceDecoder is the independent decoder.
type referenceDecoder struct {
	summary
	streamed    bool
	reason      string
	isRefusal   bool
	order       []string
	names, args map[string]string
}

func (w *referenceDecoder) addEvent(v map[string]any) {
	if u, ok := v["usage"].(map[string]any); ok {
		w.addUsage(u)
	}
	choices, _ := v["choices"].([]any)
	for _, c := range choices {
		c := c.(map[string]any)
		if c["index"] == 1.0 {
			continue // of two answers, which we never ask for
		}
		w.reason = cmp.Or(str(c["finish_reason"]), w.reason)
		m, _ := c["message"].(map[string]any)
		if delta, ok := c["delta"].(map[string]any); ok && (w.streamed || m == nil) {
			m = delta
		}
		if m != nil {
			w.addMessage(m)
		}
	}
}

func (w *referenceDecoder) addMessage(m map[string]any) {
	w.Text += str(m["content"])
	parts, _ := m["content"].([]any)
	for _, p := range parts {
		p := p.(map[string]any)
		w.Text += str(p["text"])
		if inner, ok := p["thinking"].([]any); ok {
			w.Thinking += str(inner[0].(map[string]any)["text"])
		}
	}
	w.Text += str(m["refusal"])
	w.isRefusal = w.isRefusal || str(m["refusal"]) != ""
	details := ""
	list, _ := m["reasoning_details"].([]any)
	for _, d := range list {
		details += str(d.(map[string]any)["text"]) + str(d.(map[string]any)["summary"])
	}
	w.Thinking += cmp.Or(str(m["reasoning_content"]), str(m["reasoning"]), details)
	calls, _ := m["tool_calls"].([]any)
	if f, ok := m["function_call"].(map[string]any); ok && calls == nil {
		calls = []any{map[string]any{"function": f}}
	}
	w.addCalls(calls)
}

func (w *referenceDecoder) addCalls(calls []any) {
	for position, c := range calls {
		c := c.(map[string]any)
		key := fmt.Sprint(position)
		if index, ok := c["index"].(float64); ok {
			key = fmt.Sprint(index)
		}
		f := c["function"].(map[string]any)
		if str(f["name"])+str(f["arguments"]) == "" {
			continue // says nothing yet, or at all (Snowflake)
		}
		if !slices.Contains(w.order, key) {
			w.order = append(w.order, key)
		}
		w.names[key] = cmp.Or(w.names[key], str(f["name"]))
		w.args[key] += str(f["arguments"])
	}
}

func (w *referenceDecoder) addUsage(u map[string]any) {
	number := func(m map[string]any, key string) int64 { f, _ := m[key].(float64); return int64(f) }
	in, _ := u["prompt_tokens_details"].(map[string]any)
	out, _ := u["completion_tokens_details"].(map[string]any)
	w.In, w.Out = number(u, "prompt_tokens"), number(u, "completion_tokens")
	w.Read = max(number(in, "cached_tokens"), number(u, "prompt_cache_hit_tokens"), number(u, "cached_tokens"), number(u, "num_cached_tokens"))
	w.Read = min(w.Read, w.In) // Azure's Grok has more in the cache than it read
	if hidden := number(u, "total_tokens") - w.In - w.Out; hidden > 0 {
		w.Out += hidden
	} else if thought := number(out, "reasoning_tokens"); thought > w.Out {
		w.Out += thought
	}
}

// thinkTags matches thinking at the start of a text.
var thinkTags = regexp.MustCompile(`(?s)^\s*<think>(.*?)(</think>\s*|$)`)

func (w *referenceDecoder) result() summary {
	if m := thinkTags.FindStringSubmatch(w.Text); m != nil {
		w.Thinking += m[1]
		w.Text = w.Text[len(m[0]):]
	}
	for _, key := range w.order {
		w.Calls = append(w.Calls, model.Call{Name: w.names[key], Args: wiretest.CanonicalJSON(cmp.Or(w.args[key], "{}"))})
	}
	w.Finish = step.FinishStop
	switch {
	case w.isRefusal:
		w.Finish = step.FinishRefusal
	case w.reason == "length":
		w.Finish = step.FinishLength
	case len(w.Calls) > 0:
		w.Finish = step.FinishCalls
	}
	return w.summary
}

func str(v any) string { s, _ := v.(string); return s }

// text joins the parts of one kind.
func text(r model.Response, kind step.PartKind) string {
	var b strings.Builder
	for _, p := range r.Parts {
		if p.Kind == kind {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}

// Providers accepted the images and documents of recorded requests, so they are written alike.
func TestFilesAreSentAsInRecordedRequests(t *testing.T) {
	wiretest.CheckFiles(t, "chat", func(network http.RoundTripper) model.Model { return at(t, network) })
}
