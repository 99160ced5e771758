package model_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// of is a stream of these deltas, and then of err if there is one.
func of(err error, deltas ...model.Delta) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, d := range deltas {
			if !yield(d, nil) {
				return
			}
		}
		if err != nil {
			yield(model.Delta{}, err)
		}
	}
}

func piece(index int, name, args string) model.Delta {
	return model.Delta{Call: &model.CallDelta{Index: index, Name: name, Args: args}}
}

func TestCollect(t *testing.T) {
	finish := model.Delta{Finish: step.FinishStop}
	cases := map[string]struct {
		deltas []model.Delta
		want   model.Response
	}{
		"neighboring texts are one part": {
			[]model.Delta{{Thinking: "H"}, {Thinking: "m"}, {Text: "H"}, {Text: "i"}, {Thinking: "!"}, finish},
			model.Response{Finish: step.FinishStop, Parts: []step.Part{
				{Kind: step.PartThinking, Text: "Hm"}, {Kind: step.PartText, Text: "Hi"}, {Kind: step.PartThinking, Text: "!"},
			}},
		},
		"a signature and what the provider keeps belong to the thinking before them": {
			[]model.Delta{{Thinking: "Hm"}, {Signature: "a"}, {Signature: "b"}, {Provider: json.RawMessage(`{}`)}, finish},
			model.Response{Finish: step.FinishStop, Parts: []step.Part{
				{Kind: step.PartThinking, Text: "Hm", Signature: "ab", Provider: json.RawMessage(`{}`)},
			}},
		},
		"what the provider keeps ends a part": {
			[]model.Delta{
				{Provider: json.RawMessage(`1`)},
				{Provider: json.RawMessage(`2`)},
				{Thinking: "Hm"},
				{Text: "H"},
				{Text: "i"},
				{Kind: step.PartText, Provider: json.RawMessage(`3`)},
				{Text: "Ho"},
				{Kind: step.PartOpaque, Provider: json.RawMessage(`4`)},
				{Text: "!"},
				finish,
			},
			model.Response{Finish: step.FinishStop, Parts: []step.Part{
				{Kind: step.PartThinking, Provider: json.RawMessage(`1`)},
				{Kind: step.PartThinking, Provider: json.RawMessage(`2`)},
				{Kind: step.PartThinking, Text: "Hm"},
				{Kind: step.PartText, Text: "Hi", Provider: json.RawMessage(`3`)},
				{Kind: step.PartText, Text: "Ho"},
				{Kind: step.PartOpaque, Provider: json.RawMessage(`4`)},
				{Kind: step.PartText, Text: "!"},
			}},
		},
		"a call has its place among the parts, unless it is the end": {
			[]model.Delta{{Text: "a"}, piece(0, "a", "{}"), {Text: "b"}, piece(1, "b", "{}"), piece(0, "", " "), piece(2, "c", "{}"), finish},
			model.Response{
				Finish: step.FinishStop, Calls: []model.Call{{Name: "a", Args: "{}"}, {Name: "b", Args: "{}"}, {Name: "c", Args: "{}"}},
				Parts: []step.Part{{Kind: step.PartText, Text: "a"}, {Kind: step.PartCall}, {Kind: step.PartText, Text: "b"}},
			},
		},
		"what the provider keeps of a call is in its part": {
			[]model.Delta{
				piece(1, "b", "{}"),
				{Call: &model.CallDelta{Index: 1, Provider: json.RawMessage(`0`)}},
				piece(0, "a", "{}"),
				{Call: &model.CallDelta{Index: 1, Provider: json.RawMessage(`1`)}},
				piece(2, "c", "{}"), finish,
			},
			model.Response{
				Finish: step.FinishStop, Calls: []model.Call{{Name: "a", Args: "{}"}, {Name: "b", Args: "{}"}, {Name: "c", Args: "{}"}},
				Parts: []step.Part{{Kind: step.PartCall}, {Kind: step.PartCall, Provider: json.RawMessage(`1`)}},
			},
		},
		"pieces of calls are put together by their index": {
			[]model.Delta{piece(1, "b", "{"), piece(0, "a", ""), piece(1, "", "}"), finish},
			model.Response{Finish: step.FinishStop, Calls: []model.Call{{Name: "a", Args: "{}"}, {Name: "b", Args: "{}"}}},
		},
		"arguments may be replaced": {
			[]model.Delta{piece(0, "a", "{}"), {Call: &model.CallDelta{Args: `{"x":1}`, Replace: true}}, finish},
			model.Response{Finish: step.FinishStop, Calls: []model.Call{{Name: "a", Args: `{"x":1}`}}},
		},
		"a reset voids what came before it, but not what that cost": {
			[]model.Delta{{Text: "No"}, piece(0, "a", ""), {Reset: true, Usage: &step.Usage{InputTokens: 3}}, {Text: "Yes"}, finish},
			model.Response{Finish: step.FinishStop, Parts: []step.Part{{Kind: step.PartText, Text: "Yes"}}, Usage: step.Usage{InputTokens: 3}},
		},
		"a reset that tells no usage does not void what was told": {
			[]model.Delta{{Text: "No", Usage: &step.Usage{InputTokens: 3}}, {Reset: true}, {Text: "Yes"}, finish},
			model.Response{Finish: step.FinishStop, Parts: []step.Part{{Kind: step.PartText, Text: "Yes"}}, Usage: step.Usage{InputTokens: 3}},
		},
		"of the window only the last try took anything": {
			[]model.Delta{
				{Text: "No"},
				{Reset: true, Usage: &step.Usage{InputTokens: 90, OutputTokens: 9}},
				{Text: "No"},
				{Reset: true, Usage: &step.Usage{InputTokens: 190, OutputTokens: 19}},
				{Text: "Yes", Usage: &step.Usage{InputTokens: 290, OutputTokens: 24}},
				finish,
			},
			model.Response{
				Finish: step.FinishStop, Parts: []step.Part{{Kind: step.PartText, Text: "Yes"}},
				Usage: step.Usage{InputTokens: 290, OutputTokens: 24, ContextTokens: 105},
			},
		},
		"an answer of several requests says itself what it took": {
			[]model.Delta{
				{Reset: true, Usage: &step.Usage{InputTokens: 90}},
				{Text: "Yes", Usage: &step.Usage{InputTokens: 290, OutputTokens: 24, ContextTokens: 60}},
				finish,
			},
			model.Response{
				Finish: step.FinishStop, Parts: []step.Part{{Kind: step.PartText, Text: "Yes"}},
				Usage: step.Usage{InputTokens: 290, OutputTokens: 24, ContextTokens: 60},
			},
		},
		"the last usage counts": {
			[]model.Delta{{Usage: &step.Usage{InputTokens: 3}}, {Usage: &step.Usage{InputTokens: 4}}, finish},
			model.Response{Finish: step.FinishStop, Usage: step.Usage{InputTokens: 4}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var seen []model.Delta
			got, err := model.Collect(of(nil, tc.deltas...), func(d model.Delta) { seen = append(seen, d) })
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
			if diff := cmp.Diff(tc.deltas, seen); diff != "" {
				t.Errorf("seen: -want +got:\n%s", diff)
			}
		})
	}
}

func TestCollectKeepsWhatArrivedBeforeAnError(t *testing.T) {
	cases := map[string]error{"an end without a finish": nil, "a stream that broke": &model.IncompleteError{Cause: errors.New("reset")}}
	for name, cause := range cases {
		t.Run(name, func(t *testing.T) {
			usage := step.Usage{InputTokens: 3}
			got, err := model.Collect(of(cause, model.Delta{Text: "Hi"}, model.Delta{Usage: &usage}), nil)
			var incomplete *model.IncompleteError
			if !errors.As(err, &incomplete) {
				t.Fatal(err)
			}
			want := model.Response{Parts: []step.Part{{Kind: step.PartText, Text: "Hi"}}, Usage: usage}
			if diff := cmp.Diff([]model.Response{want, want}, []model.Response{got, incomplete.Partial}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// However an answer without end is made up, only so much of it is kept.
func TestCollectBoundsAnAnswer(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	cases := map[string]struct {
		delta func(i int) model.Delta
		ends  bool // it is an answer, however long it takes
	}{
		"text":       {delta: func(int) model.Delta { return model.Delta{Text: long} }},
		"thinking":   {delta: func(int) model.Delta { return model.Delta{Thinking: long} }},
		"signatures": {delta: func(int) model.Delta { return model.Delta{Signature: long} }},
		"opaque":     {delta: func(int) model.Delta { return model.Delta{Kind: step.PartOpaque, Provider: json.RawMessage(long)} }},
		"reasoning":  {delta: func(int) model.Delta { return model.Delta{Provider: json.RawMessage(long)} }},
		"arguments":  {delta: func(int) model.Delta { return piece(0, "a", long) }},
		"many calls": {delta: func(i int) model.Delta { return piece(i, long, "") }},
		"what is replaced": {ends: true, delta: func(int) model.Delta {
			return model.Delta{Call: &model.CallDelta{Args: long, Replace: true, Provider: json.RawMessage(long)}}
		}},
		"what is asked again": {ends: true, delta: func(int) model.Delta { return model.Delta{Reset: true, Text: long} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := 0
			_, err := model.Collect(func(yield func(model.Delta, error) bool) {
				for read < 1000 && yield(tc.delta(read), nil) {
					read++
				}
				if read == 1000 {
					yield(model.Delta{Finish: step.FinishStop}, nil)
				}
			}, nil)
			endless, bounded := errors.AsType[*model.NotAModelError](err)
			if bounded == tc.ends || tc.ends && err != nil || bounded && (read < 63 || read > 64 || !strings.Contains(endless.Error(), "more than 4 MiB")) {
				t.Errorf("after %d pieces: %v", read, err)
			}
		})
	}
}

func TestTransient(t *testing.T) {
	cases := map[string]struct {
		err  error
		want bool
	}{
		"rate limited":           {&model.RateLimitedError{}, true},
		"unavailable":            {&model.UnavailableError{}, true},
		"incomplete":             {&model.IncompleteError{}, true},
		"broken off":             {&model.BrokenOffError{Reason: "abort"}, true},
		"too late":               {&model.TimeoutError{Field: model.TimeoutTotal}, true},
		"wrapped":                {fmt.Errorf("asking: %w", &model.UnavailableError{}), true},
		"unauthorized":           {&model.UnauthorizedError{}, false},
		"a bad request":          {&model.BadRequestError{}, false},
		"too long":               {&model.ContextTooLongError{}, false},
		"not a model":            {&model.NotAModelError{}, false},
		"cancelled":              {context.Canceled, false},
		"cancelled in an answer": {&model.IncompleteError{Cause: context.Canceled}, false},
		"none":                   {nil, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := model.Transient(tc.err); got != tc.want {
				t.Errorf("Transient(%v) = %t", tc.err, got)
			}
		})
	}
}

func TestEstimateInputGrowsWithAllThatIsSent(t *testing.T) {
	req := &model.Request{}
	last := model.EstimateInput(req)
	text := "forty characters, which are ten tokens.."
	grow := []func(){
		func() { req.System = text },
		func() {
			req.Steps = append(req.Steps, step.Step{Parts: []step.Part{{Kind: step.PartText, Text: text}}})
		},
		func() {
			req.Steps = append(req.Steps, step.Step{Calls: []step.Call{{Name: "x", Args: json.RawMessage(text)}}})
		},
		func() { req.Tools = append(req.Tools, step.Tool{Description: text}) },
	}
	for i, f := range grow {
		f()
		now := model.EstimateInput(req)
		if added := now - last; added < 10 || added > 15 {
			t.Errorf("%d: 40 bytes more are %d tokens more", i, added)
		}
		last = now
	}
}

// BenchmarkCollect assembles an answer of 2,000 deltas.
func BenchmarkCollect(b *testing.B) {
	deltas := []model.Delta{}
	for range 1000 {
		deltas = append(deltas, model.Delta{Text: " word"}, piece(0, "", "word "))
	}
	stream := of(nil, append(deltas, model.Delta{Finish: step.FinishStop})...)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := model.Collect(stream, nil); err != nil {
			b.Fatal(err)
		}
	}
}
