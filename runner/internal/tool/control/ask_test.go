package control

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A person answers every question in the same way.
type person struct {
	tool.Session
	asked  []tool.Question
	answer tool.Answer
	err    error
}

func (p *person) Ask(_ context.Context, q tool.Question) (tool.Answer, error) {
	p.asked = append(p.asked, q)
	return p.answer, p.err
}

func TestAsk(t *testing.T) {
	cases := map[string]struct {
		args   string
		answer tool.Answer
		asked  string
		want   tool.Result
	}{
		"an answer": {
			`{"question":" Which branch? "}`,
			tool.Answer{Text: "main", By: "ann@example.com"},
			"Which branch?",
			tool.Result{Text: "Answer by ann@example.com:\nmain", Summary: "answered by ann@example.com"},
		},
		"options": {
			`{"question":"Which?","options":["main"," next"]}`,
			tool.Answer{Text: "2", By: "ann"},
			"Which?\n1. main\n2. next",
			tool.Result{Text: "Answer by ann:\n2", Summary: "answered by ann"},
		},
		"an answer without a word": {
			`{"question":"Go on?"}`,
			tool.Answer{By: "ann"},
			"Go on?",
			tool.Result{Text: "The question was answered by ann, without a word.", Summary: "answered by ann"},
		},
		"an answer without a name": {
			`{"question":"Go on?"}`,
			tool.Answer{Text: "yes"},
			"Go on?",
			tool.Result{Text: "Answer by a user:\nyes", Summary: "answered by a user"},
		},
		"nobody": {
			`{"question":"Go on?"}`,
			tool.Answer{Expired: true},
			"Go on?",
			tool.Result{Text: unanswered, Failed: true, Summary: "not answered in time"},
		},
		"no question": {
			`{"question":" "}`, tool.Answer{}, "", tool.Fail("The question is empty.", "Write what you want to know."),
		},
		"too long a question": {
			`{"question":"` + strings.Repeat("x", 2000) + `","options":["a"]}`,
			tool.Answer{},
			"",
			tool.Fail("The question has 2005 bytes with its options; at most 1024 are shown.", "Ask in fewer words, and put the details into a file that you name."),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &person{answer: tc.answer}
			got, err := Ask().Call(t.Context(), tool.Call{ID: "s1c1", Args: json.RawMessage(tc.args), Session: p})
			if err != nil {
				t.Fatalf("Call: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("Call() -want +got:\n%s", diff)
			}
			var want []tool.Question // that any answer fits
			if tc.asked != "" {
				want = []tool.Question{{Call: "s1c1", Text: tc.asked}}
			}
			if diff := cmp.Diff(want, p.asked); diff != "" {
				t.Errorf("asked -want +got:\n%s", diff)
			}
		})
	}
}

func TestAskForAnAnswerThatFits(t *testing.T) {
	const form = `{"properties":{"branch":{"enum":["main","next"],"type":"string"},"n":{"minimum":1,"type":"integer"}},"required":["branch"],"type":"object"}`
	p := &person{answer: tool.Answer{Text: `{"branch":"main"}`, By: "ann"}}
	got, err := Ask().Call(t.Context(), tool.Call{ID: "s1c1", Args: json.RawMessage(`{"question":"Which?","schema":` + form + `}`), Session: p})
	want := tool.Result{Text: `{"branch":"main"}`, Summary: "answered by ann"}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Fatalf("Call() -want +got (%v):\n%s", err, diff)
	}
	if len(p.asked) != 1 || string(p.asked[0].Schema) != form {
		t.Fatalf("asked %+v", p.asked)
	}
	cases := map[string]struct{ answer, want string }{
		"what fits":               {`{"branch":"next","n":2}`, ""},
		"words":                   {"main", "the value is not JSON"},
		"nothing":                 {"", "the value is not JSON"},
		"something behind it":     {`{"branch":"next"} and`, "the value is not JSON"},
		"what is none of those":   {`{"branch":"dev"}`, "`branch` must be one of \"main\", \"next\"; got \"dev\""},
		"what lacks a part":       {`{"n":1}`, "`branch` is missing; there are: branch (required), n"},
		"what is out of bounds":   {`{"branch":"next","n":0}`, "`n` must be at least 1; got 0"},
		"what is another thing":   {`["main"]`, "the value must be an object; got an array"},
		"what is of another type": {`{"branch":1}`, "`branch` must be a string; got an integer"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			said := ""
			if err := p.asked[0].Fits(tc.answer); err != nil {
				said = err.Error()
			}
			if said != tc.want {
				t.Errorf("Fits(%s) = %q, want %q", tc.answer, said, tc.want)
			}
		})
	}
}

func TestNobodyAnswersInTheForm(t *testing.T) {
	p := &person{answer: tool.Answer{Expired: true}}
	got, err := Ask().Call(t.Context(), tool.Call{Args: json.RawMessage(`{"question":"Which?","schema":{"type":"object"}}`), Session: p})
	if err != nil || got.Text != unanswered {
		t.Errorf("Call() = %+v, %v", got, err)
	}
}

func TestSchemasThatPeopleCannotAnswerBy(t *testing.T) {
	cases := map[string]struct{ schema, want string }{
		"what is no object":               {`{"type":"string"}`, "The schema cannot be used: type must be object: the value as a whole has named parts."},
		"what is not known":               {`{"type":"object","oneOf":[]}`, "The schema cannot be used: oneOf is not supported"},
		"an empty one":                    {`{}`, "The schema cannot be used: the schema needs a type"},
		"too large a one":                 {`{"type":"object","title":"` + strings.Repeat("x", task.MaxSchema) + `"}`, "The schema has 1052 bytes; at most 1024 are shown."},
		"one that shows itself otherwise": {`{"type":"object","title":"a\u202eb"}`, "The schema has characters that cannot be seen."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &person{}
			got, err := Ask().Call(t.Context(), tool.Call{Args: json.RawMessage(`{"question":"Which?","schema":` + tc.schema + `}`), Session: p})
			if err != nil || got.Error == nil || !strings.HasPrefix(got.Error.Message, tc.want) || len(p.asked) > 0 {
				t.Errorf("Call() = %+v, %v; asked %v", got.Error, err, p.asked)
			}
		})
	}
}

func TestAskPassesOnThatTheSessionCannotGoOn(t *testing.T) {
	lost := errors.New("interrupted")
	_, err := Ask().Call(t.Context(), tool.Call{Args: json.RawMessage(`{"question":"x"}`), Session: &person{err: lost}})
	if !errors.Is(err, lost) {
		t.Errorf("Call: error %v, want %v", err, lost)
	}
}

func TestAskWaits(t *testing.T) {
	spec := Ask().Spec
	if spec.Timeout != tool.Unbounded || spec.Effect != tool.Resumable || spec.Concurrency != tool.Parallel || spec.Internal.Facts().Ends || spec.Name != NameAsk {
		t.Errorf("Spec() = %+v", spec)
	}
}
