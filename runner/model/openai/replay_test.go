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

func (r *referenceDecoder) addEvent(v map[string]any) {
	if u, ok := v["usage"].(map[string]any); ok {
		r.addUsage(u)
	}
	choices, _ := v["choices"].([]any)
	for _, c := range choices {
		c := c.(map[string]any)
		if c["index"] == 1.0 {
			continue // of two answers, which we never ask for
		}
		r.reason = cmp.Or(str(c["finish_reason"]), r.reason)
		m, _ := c["message"].(map[string]any)
		if delta, ok := c["delta"].(map[string]any); ok && (r.streamed || m == nil) {
			m = delta
		}
		if m != nil {
			r.addMessage(m)
		}
	}
}

func (r *referenceDecoder) addMessage(m map[string]any) {
	r.Text += str(m["content"])
	parts, _ := m["content"].([]any)
	for _, p := range parts {
		p := p.(map[string]any)
		r.Text += str(p["text"])
		if inner, ok := p["thinking"].([]any); ok {
			r.Thinking += str(inner[0].(map[string]any)["text"])
		}
	}
	r.Text += str(m["refusal"])
	r.isRefusal = r.isRefusal || str(m["refusal"]) != ""
	details := ""
	list, _ := m["reasoning_details"].([]any)
	for _, d := range list {
		details += str(d.(map[string]any)["text"]) + str(d.(map[string]any)["summary"])
	}
	r.Thinking += cmp.Or(str(m["reasoning_content"]), str(m["reasoning"]), details)
	calls, _ := m["tool_calls"].([]any)
	if f, ok := m["function_call"].(map[string]any); ok && calls == nil {
		calls = []any{map[string]any{"function": f}}
	}
	r.addCalls(calls)
}

func (r *referenceDecoder) addCalls(calls []any) {
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
		if !slices.Contains(r.order, key) {
			r.order = append(r.order, key)
		}
		r.names[key] = cmp.Or(r.names[key], str(f["name"]))
		r.args[key] += str(f["arguments"])
	}
}

func (r *referenceDecoder) addUsage(u map[string]any) {
	number := func(m map[string]any, key string) int64 { f, _ := m[key].(float64); return int64(f) }
	in, _ := u["prompt_tokens_details"].(map[string]any)
	out, _ := u["completion_tokens_details"].(map[string]any)
	r.In, r.Out = number(u, "prompt_tokens"), number(u, "completion_tokens")
	r.Read = max(number(in, "cached_tokens"), number(u, "prompt_cache_hit_tokens"), number(u, "cached_tokens"), number(u, "num_cached_tokens"))
	r.Read = min(r.Read, r.In) // Azure's Grok has more in the cache than it read
	if hidden := number(u, "total_tokens") - r.In - r.Out; hidden > 0 {
		r.Out += hidden
	} else if thought := number(out, "reasoning_tokens"); thought > r.Out {
		r.Out += thought
	}
}

// thinkTags matches thinking at the start of a text.
var thinkTags = regexp.MustCompile(`(?s)^\s*<think>(.*?)(</think>\s*|$)`)

func (r *referenceDecoder) result() summary {
	if m := thinkTags.FindStringSubmatch(r.Text); m != nil {
		r.Thinking += m[1]
		r.Text = r.Text[len(m[0]):]
	}
	for _, key := range r.order {
		r.Calls = append(r.Calls, model.Call{Name: r.names[key], Args: wiretest.CanonicalJSON(cmp.Or(r.args[key], "{}"))})
	}
	r.Finish = step.FinishStop
	switch {
	case r.isRefusal:
		r.Finish = step.FinishRefusal
	case r.reason == "length":
		r.Finish = step.FinishLength
	case len(r.Calls) > 0:
		r.Finish = step.FinishCalls
	}
	return r.summary
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
