package engine

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// routed is a testRun with a route to Model b.
func routed(applies func(RouteTurn) (bool, error), own []turn, other ...turn) (*testRun, *fakeModel) {
	s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, own...)
	b := &fakeModel{turns: other}
	s.Actor.Routes = []Route{{
		Model: Model{Model: b, Name: "b"}, When: "x",
		Applies: func(_ context.Context, t RouteTurn) (bool, error) { return applies(t) },
	}}
	return s, b
}

func at(turns ...int64) func(RouteTurn) (bool, error) {
	return func(t RouteTurn) (bool, error) {
		return slices.Contains(turns, t.Number), nil
	}
}

func (tr *testRun) answeredBy(t *testing.T) string {
	t.Helper()
	var all []string
	for _, st := range tr.steps(t) {
		if st.Role == step.RoleAssistant {
			all = append(all, st.Model)
		}
	}
	return strings.Join(all, " ")
}

func routings(s *testRun) []events.ModelRouted {
	var all []events.ModelRouted
	for _, p := range s.sink.all {
		if e, ok := p.(events.ModelRouted); ok {
			all = append(all, e)
		}
	}
	return all
}

// A story of three turns: the agent's Model, the route's, and the agent's again.
func TestARouteAnswersTheTurnsThatItSelects(t *testing.T) {
	first, second := calls(`Read {"n":1}`), calls(`Read {"n":2}`)
	first.usage = step.Usage{InputTokens: 1000, CacheReadTokens: 600, CacheWriteTokens: 300, OutputTokens: 5}
	second.usage = step.Usage{InputTokens: 1100, CacheWriteTokens: 1000, OutputTokens: 5}
	s, b := routed(at(2), []turn{first, says("done")}, second)
	price := func(_ string, u step.Usage, _ time.Time) step.Usage {
		u.CostMicroUSD, u.Priced = (u.InputTokens-u.CacheReadTokens)*10+u.CacheReadTokens, true
		return u
	}
	s.Actor.Model.Price, s.Actor.Routes[0].Model.Price = price, price
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatal(out.Message)
	}
	if got := s.answeredBy(t); got != "m b m" || len(b.asked) != 1 {
		t.Errorf("the turns were answered by %q", got)
	}
	want := []events.ModelRouted{
		{Step: 4, From: "m", To: "b", When: "x", UncachedTokens: 900, UncachedMicroUSD: 8100},
		{Step: 6, From: "b", To: "m", UncachedTokens: 100, UncachedMicroUSD: 900},
	}
	if diff := cmp.Diff(want, routings(s)); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

func TestAModelStaysWithinItsReasoning(t *testing.T) {
	thinks := func(seq int64, m string) step.Step {
		return step.Step{Seq: seq, Role: step.RoleAssistant, Model: m, Parts: []step.Part{{Kind: step.PartThinking, Text: "hm"}}, Calls: []step.Call{{ID: "c"}}}
	}
	result, user := step.Step{Seq: 3, Role: step.RoleTool}, step.Step{Seq: 1, Role: step.RoleUser}
	note := step.Step{Seq: 4, Role: step.RoleUser, Note: step.NoteRunner}
	message := step.Step{Seq: 4, Role: step.RoleUser, Note: step.NoteMessage}
	plain := step.Step{Seq: 2, Role: step.RoleAssistant, Model: "a", Calls: []step.Call{{ID: "c"}}, Parts: []step.Part{{Kind: step.PartText, Text: "x", Provider: []byte(`{"phase":1}`)}}}
	signed := step.Step{Seq: 2, Role: step.RoleAssistant, Model: "a", Calls: []step.Call{{ID: "c"}}, Parts: []step.Part{{Kind: step.PartCall, Provider: []byte(`{}`), Signed: true}}}
	named := step.Step{Seq: 2, Role: step.RoleAssistant, Model: "a", Calls: []step.Call{{ID: "c"}}, Parts: []step.Part{{Kind: step.PartCall, Provider: []byte(`{"call_id":"call_1"}`)}}}
	final := step.Step{Seq: 5, Role: step.RoleAssistant, Model: "a", Parts: []step.Part{{Kind: step.PartThinking, Text: "hm"}}}
	cases := map[string]struct {
		steps []step.Step
		want  bool
	}{
		"a new session":                                {[]step.Step{user}, true},
		"reasoning of another Model":                   {[]step.Step{user, thinks(2, "a"), result}, false},
		"its own reasoning":                            {[]step.Step{user, thinks(2, "b"), result}, true},
		"no reasoning":                                 {[]step.Step{user, plain, result}, true},
		"a signature of a call":                        {[]step.Step{user, signed, result}, false},
		"the provider's id of a call":                  {[]step.Step{user, named, result}, true},
		"reasoning of an earlier turn of the loop":     {[]step.Step{user, thinks(2, "a"), result, plain, result}, false},
		"a notice of the runner does not end the loop": {[]step.Step{user, thinks(2, "a"), result, note}, false},
		"a message of a user ends the loop":            {[]step.Step{user, thinks(2, "a"), result, message}, true},
		"an answer without calls ends the loop":        {[]step.Step{user, thinks(2, "a"), result, final, note}, true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			if got := canRead(c.steps, "b"); got != c.want {
				t.Errorf("it is %v", got)
			}
		})
	}
}

// middle is a model that answers with reasoning and a call so many times, and then ends.
type middle struct {
	calls int
	then  turn
}

func (m *middle) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		t := m.then
		if m.calls > 0 {
			m.calls--
			t = calls(fmt.Sprintf(`Read {"n":%d}`, m.calls))
			if !yield(model.Delta{Thinking: "hm"}, nil) {
				return
			}
		}
		for d, err := range (&fakeModel{turns: []turn{t}}).Stream(ctx, req) {
			if !yield(d, err) {
				return
			}
		}
	}
}

func TestARouteThatMayNotAnswerIsOneEvent(t *testing.T) {
	s, b := routed(at(2, 3), nil, says("never"))
	s.Actor.Model.Model = &middle{calls: 2, then: says("done")}
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatal(out.Message)
	}
	want := []events.ModelRouted{{Step: 4, From: "m", To: "b", When: "x", Kept: true}}
	if diff := cmp.Diff(want, routings(s)); diff != "" || len(b.asked) != 0 {
		t.Errorf("b was asked %d times, events -want +got:\n%s", len(b.asked), diff)
	}
}

func TestAnExpressionThatFailsSelectsTheAgentsModel(t *testing.T) {
	s, _ := routed(func(n RouteTurn) (bool, error) {
		if n.Number == 2 {
			return false, errors.New("division by zero")
		}
		return true, nil
	}, []turn{says("done")}, calls(`Read {"n":1}`))
	s.Actor.Routes = append(s.Actor.Routes, Route{Model: Model{Model: &fakeModel{}, Name: "c"}})
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatal(out.Message)
	}
	if got := s.answeredBy(t); got != "b m" {
		t.Errorf("the turns were answered by %q", got)
	}
	want := []events.ModelRouted{{Step: 2, From: "m", To: "b", When: "x"}, {Step: 4, From: "b", To: "m", When: "x", Error: "division by zero"}}
	if diff := cmp.Diff(want, routings(s)); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

// The first attempt is cut after it chose; the second asks the chosen Model without choosing.
func TestAChoiceIsNotMadeAgain(t *testing.T) {
	s, _ := routed(at(2), []turn{calls(`Read {"n":1}`)}, fails(context.Canceled))
	s.run(t)
	marks := 0
	for r := range s.journal.Read() {
		if r.Mark != nil && r.Mark.Type == journal.MarkRoute {
			marks++
		}
	}
	next := s.again(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, says("wrong"))
	b := &fakeModel{turns: []turn{says("right")}}
	next.Actor.Routes = []Route{{Model: Model{Model: b, Name: "b"}, Applies: func(context.Context, RouteTurn) (bool, error) {
		t.Error("it is decided again")
		return false, nil
	}}}
	out := next.run(t)
	if out.Text != "right" || marks != 1 || len(routings(next)) != 0 {
		t.Errorf("%+v, with %d marks and %v", out, marks, routings(next))
	}
}

// The Model that is chosen has a smaller window: the session is compacted for it, once.
func TestTheWindowOfTheChosenModelDecides(t *testing.T) {
	s, r := library(12, 4000)
	small := Model{Model: r, Name: "small", Window: 8000, MaxOutput: 500}
	s.Actor.Model.Window = 200_000
	s.Actor.Routes = []Route{{Model: small, Applies: func(_ context.Context, n RouteTurn) (bool, error) { return n.Number >= 8, nil }}}
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Fatal(out.Message)
	}
	for i, req := range r.asked {
		if size := model.EstimateInput(req); i >= 7 && size > 8000 {
			t.Errorf("request %d to the small Model is about %d tokens", i, size)
		}
	}
}
