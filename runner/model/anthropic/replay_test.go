package anthropic_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"math"
	"net/http"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// isForeign reports whether the answer is of another API that happens to call its
// objects messages: OpenAI's threads.
func isForeign(r wiretest.Recording) bool { return r.Host == "api.openai.com" }

// A summary is what two decoders must agree on.
type summary struct {
	Text, Thinking, Signature string
	Calls                     []model.Call
	Opaque                    []string // types of the provider's own blocks
	Finish                    step.Finish
	Unclear                   string // no recorded reason is
	Usage                     step.Usage
}

// decode returns the summary of a recorded answer with the given body.
func decode(t testing.TB, r wiretest.Recording, body io.Reader) (summary, error) {
	t.Helper()
	response, err := collect(t, r.Served(body))
	return summarize(response), err
}

// summarize returns the summary of a response.
func summarize(r model.Response) summary {
	w := summary{Finish: r.Finish, Unclear: r.UnclearReason, Usage: r.Usage}
	for _, p := range r.Parts {
		switch p.Kind {
		case step.PartText:
			w.Text += p.Text
		case step.PartThinking:
			w.Thinking += p.Text
			w.Signature += p.Signature
		case step.PartOpaque:
			var b struct{ Type string }
			if json.Unmarshal(p.Provider, &b) == nil {
				w.Opaque = append(w.Opaque, b.Type)
			}
		case step.PartCall: // in r.Calls
		case step.PartImage, step.PartDocument: // no model of these answers has any
		}
	}
	for _, c := range r.Calls {
		w.Calls = append(w.Calls, model.Call{Name: c.Name, Args: wiretest.CanonicalJSON(c.Args)})
	}
	return w
}

func TestRecordedAnswersAreReadWhole(t *testing.T) {
	decoded, errs, foreign := map[bool]int{}, 0, 0
	for _, r := range wiretest.Recordings(t, "anthropic") {
		switch {
		case isForeign(r):
			foreign++
			_, err := decode(t, r, bytes.NewReader(r.Raw))
			if _, ok := errors.AsType[*model.NotAModelError](err); !ok {
				t.Errorf("%s is of another API, but: %v", r.Name(), err)
			}
			continue
		case r.Status != http.StatusOK:
			errs++
			continue
		}
		want := decodeReference(t, r)
		wiretest.CheckPieces(t, r, want, decode)
		decoded[r.Stream]++
	}
	t.Logf("decoded %d streamed and %d plain answers, %d errors; refused %d of another API", decoded[true], decoded[false], errs, foreign)
}

// A prefix of an answer is the whole answer or an error, wherever it ends.
func TestNoPrefixOfARecordedAnswerIsTakenForAnother(t *testing.T) {
	prefixes, whole := 0, 0
	for _, r := range wiretest.Recordings(t, "anthropic") {
		if r.Status != http.StatusOK || isForeign(r) {
			continue
		}
		want := decodeReference(t, r)
		want.Usage = step.Usage{} // comes last
		for end := len(r.Raw) - 1; end >= 0; end -= r.Stride() {
			prefixes++
			got, err := decode(t, r, bytes.NewReader(r.Raw[:end]))
			cost := got.Usage
			got.Usage = step.Usage{}
			switch diff := gocmp.Diff(want, got); {
			case err == nil && diff == "":
				whole++
			case err == nil:
				t.Errorf("%s cut at %d is taken for whole: -want +got:\n%s", r.Name(), end, diff)
			case !model.Transient(err) || got.Finish != "" || !cost.Estimated:
				t.Errorf("%s cut at %d: finish %q, cost %+v, %v", r.Name(), end, got.Finish, cost, err)
			}
		}
	}
	t.Logf("%d prefixes, of which %d hold a whole answer", prefixes, whole)
}

func TestRecordedErrorsAreTyped(t *testing.T) {
	want := map[string]error{
		"prompt is too long: 3333404 tokens > 200000 maximum": &model.ContextTooLongError{Message: "prompt is too long: 3333404 tokens > 200000 maximum", Window: 200000},
		"model: claude-sonet-4-5":                             &model.BadRequestError{Status: 404, Message: "model: claude-sonet-4-5", Asked: "POST https://api.anthropic.com/v1/messages", Refusal: model.Refusal{Cause: model.CauseModel}},
		"invalid x-api-key":                                   &model.UnauthorizedError{Status: 401, Message: "invalid x-api-key"},
		"API key is invalid.":                                 &model.UnauthorizedError{Status: 401, Message: "API key is invalid."},
		"tools.0.custom: For 'object' type, property 'properties' is not supported": &model.BadRequestError{
			Status: 400, Message: "tools.0.custom: For 'object' type, property 'properties' is not supported",
		},
	}
	for _, r := range wiretest.Recordings(t, "anthropic") {
		if r.Status == http.StatusOK {
			continue
		}
		_, err := decode(t, r, bytes.NewReader(r.Raw))
		var body struct{ Error struct{ Message string } }
		if err := json.Unmarshal(r.Raw, &body); err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(want[body.Error.Message], err); diff != "" {
			t.Errorf("%s: -want +got:\n%s", r.Name(), diff)
		}
	}
}

// decodeReference decodes an answer with nothing that the adapter uses: generic
// values, and the simplest rules that the recordings obey.
func decodeReference(t *testing.T, r wiretest.Recording) summary {
	t.Helper()
	w := referenceDecoder{blocks: map[float64]map[string]any{}, usage: map[string]any{}}
	if !r.Stream {
		var v map[string]any
		if err := json.Unmarshal(r.Raw, &v); err != nil {
			t.Fatalf("%s: %v", r.Name(), err)
		}
		for i, b := range v["content"].([]any) {
			w.blocks[float64(i)] = b.(map[string]any)
		}
		w.usage, w.reason = v["usage"].(map[string]any), str(v["stop_reason"])
		return w.result()
	}
	for line := range bytes.Lines(r.Raw) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		if !ok || bytes.Contains(data, []byte("[DONE]")) { // a gateway's
			continue
		}
		var v map[string]any
		if err := json.Unmarshal(data, &v); err != nil {
			t.Fatalf("%s: %v", r.Name(), err)
		}
		w.addEvent(v)
	}
	return w.result()
}

// A referenceDecoder is the independent decoder.
type referenceDecoder struct {
	blocks map[float64]map[string]any
	usage  map[string]any
	reason string
}

func (r *referenceDecoder) addEvent(v map[string]any) {
	index, _ := v["index"].(float64)
	d, _ := v["delta"].(map[string]any)
	switch v["type"] {
	case "message_start":
		maps.Copy(r.usage, v["message"].(map[string]any)["usage"].(map[string]any))
	case "content_block_start":
		r.blocks[index] = v["content_block"].(map[string]any)
	case "content_block_delta":
		b := r.blocks[index]
		for _, field := range []string{"text", "thinking", "signature", "partial_json"} {
			b[field] = str(b[field]) + str(d[field])
		}
	case "message_delta":
		r.reason = cmp.Or(str(d["stop_reason"]), r.reason)
		maps.Copy(r.usage, v["usage"].(map[string]any))
	}
}

func (r *referenceDecoder) result() summary {
	var got summary
	for i := range len(r.blocks) {
		switch b := r.blocks[float64(i)]; b["type"] {
		case "text":
			got.Text += str(b["text"])
		case "thinking":
			got.Thinking += str(b["thinking"])
			got.Signature += str(b["signature"])
		case "redacted_thinking":
		case "tool_use":
			args := str(b["partial_json"])
			if args == "" {
				data, _ := json.Marshal(b["input"])
				args = string(data)
			}
			got.Calls = append(got.Calls, model.Call{Name: str(b["name"]), Args: wiretest.CanonicalJSON(args)})
		default:
			got.Opaque = append(got.Opaque, str(b["type"]))
		}
	}
	got.Finish = map[string]step.Finish{"end_turn": step.FinishStop, "stop_sequence": step.FinishStop, "tool_use": step.FinishCalls, "max_tokens": step.FinishLength}[r.reason]
	parts, _ := r.usage["iterations"].([]any)
	if len(parts) == 0 {
		parts = []any{r.usage}
	}
	for _, p := range parts {
		number := func(key string) int64 { f, _ := p.(map[string]any)[key].(float64); return int64(f) }
		got.Usage.CacheReadTokens += number("cache_read_input_tokens")
		got.Usage.CacheWriteTokens += number("cache_creation_input_tokens")
		got.Usage.InputTokens += number("input_tokens") + number("cache_read_input_tokens") + number("cache_creation_input_tokens")
		got.Usage.OutputTokens += number("output_tokens")
		if len(parts) > 1 { // of the window only the last takes anything
			got.Usage.ContextTokens = number("input_tokens") + number("cache_read_input_tokens") + number("cache_creation_input_tokens") + number("output_tokens")
		}
	}
	details, _ := r.usage["output_tokens_details"].(map[string]any)
	thought, _ := details["thinking_tokens"].(float64)
	got.Usage.ReasoningTokens = int64(thought)
	if cost, ok := r.usage["cost"].(float64); ok { // of a gateway
		got.Usage.CostMicroUSD, got.Usage.Priced = int64(math.Round(cost*1e6)), true
	}
	return got
}

func str(v any) string { s, _ := v.(string); return s }

// Providers accepted the images and documents of recorded requests, so they are written alike.
func TestFilesAreSentAsInRecordedRequests(t *testing.T) {
	wiretest.CheckFiles(t, "anthropic", func(network http.RoundTripper) model.Model { return at(t, network) })
}
