package responses_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A summary is what two decoders must agree on.
type summary struct {
	Text, Thinking           string
	Calls                    []model.Call
	Finish                   step.Finish
	In, Out, Read, Reasoning int64
	// Order is the kinds of the items with what is sent back of each: the phase, the id of the
	// call or the encrypted content.
	Order []string
}

// decode returns the summary of a recorded answer with the given body.
func decode(t testing.TB, r wiretest.Recording, body io.Reader) (summary, error) {
	t.Helper()
	got, err := model.Collect(at(t, r.Served(body)).Stream(t.Context(), wiretest.Ask), nil)
	s := summary{
		Finish: got.Finish, In: got.Usage.InputTokens, Out: got.Usage.OutputTokens, Read: got.Usage.CacheReadTokens,
		Reasoning: got.Usage.ReasoningTokens,
	}
	if got.Usage.Estimated { // the recorded server did not tell
		s.In, s.Out = 0, 0
	}
	for _, c := range got.Calls {
		s.Calls = append(s.Calls, model.Call{Name: c.Name, Args: wiretest.CanonicalJSON(c.Args)})
	}
	for p := range (step.Step{Parts: got.Parts, Calls: make([]step.Call, len(got.Calls))}).Content() {
		var data struct {
			Phase     string `json:"phase"`
			CallID    string `json:"call_id"`
			Encrypted string `json:"encrypted_content"`
		}
		_ = json.Unmarshal(p.Provider, &data)
		line := string(p.Kind) + " " + data.Phase + data.CallID + data.Encrypted
		if p.Kind == step.PartText {
			s.Text += p.Text
		}
		if p.Kind == step.PartThinking {
			s.Thinking += strings.ReplaceAll(p.Text, "\n\n", "")
		}
		s.Order = append(s.Order, line)
	}
	return s, err
}

// reasons are the recorded answers that are no whole answers, by what they have.
var reasons = map[string]string{
	"queued":      "of a request in the background, which is not made here: an answer that did not end",
	"in_progress": "likewise",
	"no response": "of another request, or an error with HTTP 200",
}

// Every recorded answer is read as its bytes say, in whatever pieces it comes, or is one of
// those that have a reason.
func TestRecordedAnswersAreReadWhole(t *testing.T) {
	read, listed := map[bool]int{}, map[string]int{}
	for _, r := range wiretest.Recordings(t, "responses") {
		if r.Status != http.StatusOK {
			continue
		}
		want, status := decodeReference(t, r)
		if reasons[status] != "" {
			listed[status]++
			if got, err := decode(t, r, bytes.NewReader(r.Raw)); err == nil {
				t.Errorf("%s, %s, is taken for an answer: %+v", r.Name(), status, got)
			}
			continue
		}
		read[r.Stream]++
		wiretest.CheckPieces(t, r, want, decode)
	}
	t.Logf("read %d streamed and %d plain answers; not answers: %v", read[true], read[false], listed)
}

// A prefix of an answer is the whole answer or an error, wherever it ends.
func TestNoPrefixOfARecordedAnswerIsTakenForAnother(t *testing.T) {
	prefixes, whole := 0, 0
	for _, r := range wiretest.Recordings(t, "responses") {
		want, status := decodeReference(t, r)
		if r.Status != http.StatusOK || reasons[status] != "" || !r.Stream && r.I > 0 { // of documents the first of each file
			continue
		}
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
			if diff := gocmp.Diff(want, got); diff != "" {
				t.Errorf("%s cut at %d is taken for whole: -want +got:\n%s", r.Name(), end, diff)
			}
		}
	}
	t.Logf("%d prefixes, of which %d hold a whole answer", prefixes, whole)
}

func TestRecordedErrorsAreTyped(t *testing.T) {
	for _, r := range wiretest.Recordings(t, "responses") {
		if r.Status == http.StatusOK {
			continue
		}
		_, err := decode(t, r, bytes.NewReader(r.Raw))
		var bad *model.BadRequestError
		var unauthorized *model.UnauthorizedError
		if !errors.As(err, &bad) && !errors.As(err, &unauthorized) {
			t.Errorf("%s: got %#v", r.Name(), err)
		}
	}
}

// decodeReference decodes an answer with nothing that the adapter uses: generic values, and of a
// stream the items that are done.
func decodeReference(t *testing.T, r wiretest.Recording) (s summary, status string) {
	t.Helper()
	var last map[string]any
	var items []any
	if !r.Stream {
		_ = json.Unmarshal(r.Raw, &last)
		items, _ = last["output"].([]any)
	}
	for line := range bytes.Lines(r.Raw) {
		data, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("data:"))
		var v map[string]any
		if !r.Stream || !ok || json.Unmarshal(data, &v) != nil {
			continue
		}
		if v["type"] == "response.output_item.done" {
			items = append(items, v["item"])
		}
		if inner, ok := v["response"].(map[string]any); ok {
			last = inner
		}
	}
	status, _ = last["status"].(string)
	if status == "" || last["output"] == nil && !r.Stream {
		return s, "no response"
	}
	d := referenceDecoder{}
	for _, raw := range items {
		d.addItem(raw.(map[string]any))
	}
	d.addUsage(last["usage"])
	d.finish(last, status)
	return d.summary, status
}

type referenceDecoder struct {
	summary
	isRefusal bool
}

func (d *referenceDecoder) addItem(item map[string]any) {
	switch item["type"] {
	case "message":
		said := ""
		content, _ := item["content"].([]any)
		for _, c := range content {
			c := c.(map[string]any)
			d.isRefusal = d.isRefusal || str(c["refusal"]) != ""
			said += str(c["text"]) + str(c["refusal"])
		}
		if said != "" {
			d.Text += said
			d.Order = append(d.Order, "text "+str(item["phase"]))
		}
	case "reasoning":
		parts, _ := item["summary"].([]any)
		content, _ := item["content"].([]any)
		if len(parts) == 0 {
			parts = content
		}
		thought := ""
		for _, p := range parts {
			thought += strings.ReplaceAll(str(p.(map[string]any)["text"]), "\n\n", "")
		}
		d.Thinking += thought
		if thought+str(item["encrypted_content"]) != "" || len(content) > 0 {
			d.Order = append(d.Order, "thinking "+str(item["encrypted_content"]))
		}
	case "function_call":
		d.Calls = append(d.Calls, model.Call{Name: str(item["name"]), Args: wiretest.CanonicalJSON(str(item["arguments"]))})
		d.Order = append(d.Order, "call "+str(item["call_id"]))
	default:
		d.Order = append(d.Order, "opaque ")
	}
}

func (d *referenceDecoder) addUsage(v any) {
	number := func(m map[string]any, key string) int64 { f, _ := m[key].(float64); return int64(f) }
	u, _ := v.(map[string]any)
	in, _ := u["input_tokens_details"].(map[string]any)
	out, _ := u["output_tokens_details"].(map[string]any)
	d.In, d.Out, d.Read, d.Reasoning = number(u, "input_tokens"), number(u, "output_tokens"), number(in, "cached_tokens"), number(out, "reasoning_tokens")
	d.Read = min(d.Read, d.In)
}

func (d *referenceDecoder) finish(last map[string]any, status string) {
	details, _ := last["incomplete_details"].(map[string]any)
	d.Finish = step.FinishStop
	switch {
	case d.isRefusal || str(details["reason"]) == "content_filter":
		d.Finish = step.FinishRefusal
	case status == "incomplete":
		d.Finish = step.FinishLength
	case len(d.Calls) > 0:
		d.Finish = step.FinishCalls
	}
}

func str(v any) string { s, _ := v.(string); return s }

// The answers that were recorded after earlier ones were sent back have no id in what is sent
// for them here: every item of an answer that is recorded can be sent back.
func TestRecordedAnswersCanBeSentBack(t *testing.T) {
	kinds := map[string]int{}
	for _, r := range wiretest.Recordings(t, "responses") {
		if _, status := decodeReference(t, r); r.Status != http.StatusOK || reasons[status] != "" {
			continue
		}
		got, err := model.Collect(at(t, r.Served(bytes.NewReader(r.Raw))).Stream(t.Context(), wiretest.Ask), nil)
		if err != nil {
			t.Fatalf("%s: %v", r.Name(), err)
		}
		s := recorded(2, "m", got)
		steps := append([]step.Step{wiretest.Says(step.RoleUser, "Hello?"), s}, results(s)...)
		items := input(t, &model.Request{Steps: steps})
		for i, item := range items {
			kinds[str(item["type"])]++
			if item["id"] != nil || item["status"] != nil {
				t.Errorf("%s: %v has an id", r.Name(), item)
			}
			isLast := i+1 == len(items) || !slices.Contains([]string{"message", "function_call", "reasoning"}, str(items[i+1]["type"]))
			if item["type"] == "reasoning" && isLast {
				t.Errorf("%s: reasoning is sent without the item after it", r.Name())
			}
		}
	}
	t.Logf("sent back: %v", kinds)
}

// Providers accepted the images and documents of recorded requests, so they are written alike.
func TestFilesAreSentAsInRecordedRequests(t *testing.T) {
	wiretest.CheckFiles(t, "responses", func(network http.RoundTripper) model.Model { return at(t, network) })
}
