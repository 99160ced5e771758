package talk

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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
			tool.Result{Text: "Answer by somebody:\nyes", Summary: "answered by somebody"},
		},
		"nobody": {
			`{"question":"Go on?"}`,
			tool.Answer{Expired: true},
			"Go on?",
			tool.Result{Text: unanswered, Summary: "nobody answered"},
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
			var want []tool.Question
			if tc.asked != "" {
				want = []tool.Question{{Call: "s1c1", Text: tc.asked}}
			}
			if diff := cmp.Diff(want, p.asked); diff != "" {
				t.Errorf("asked -want +got:\n%s", diff)
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
	spec := Ask().Spec()
	if spec.Timeout != tool.Unbounded || spec.Effect != tool.Resumable || spec.Concurrency != tool.Parallel || spec.Ends || spec.Name != NameAsk {
		t.Errorf("Spec() = %+v", spec)
	}
}
