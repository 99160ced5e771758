package repair_test

import (
	"context"
	"errors"
	"iter"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/repair"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A mechanic is a model that answers with one text.
type mechanic struct {
	says  string
	err   error
	asked []*model.Request
}

func (m *mechanic) Stream(_ context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	m.asked = append(m.asked, req)
	return func(yield func(model.Delta, error) bool) {
		if m.err != nil {
			yield(model.Delta{}, m.err)
			return
		}
		yield(model.Delta{Text: m.says, Finish: step.FinishStop, Usage: &step.Usage{InputTokens: 5, OutputTokens: 2}}, nil)
	}
}

func tools(t *testing.T) *toolbox.Toolbox {
	t.Helper()
	box, err := toolbox.New(tool.Typed(tool.Spec{Name: "go"}, func(context.Context, tool.Call, struct {
		Miles int `json:"miles"`
	},
	) (tool.Result, error) {
		return tool.Result{}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestLayer(t *testing.T) {
	cases := map[string]struct {
		name, args string
		says       string
		err        error
		want       string
		asked      int
	}{
		"what fits is left alone":                   {name: "go", args: `{"miles":3}`, want: `{"miles":3}`},
		"small errors need no model":                {name: "go", args: `{miles: 3,}`, want: `{miles: 3,}`},
		"what does not fit is mended":               {name: "go", args: `{"miles":"three"}`, says: "```json\n{\"miles\":3}\n```", want: `{"miles":3}`, asked: 1},
		"a mending that does not fit is not taken":  {name: "go", args: `{"miles":"three"}`, says: `{"miles":"3"}`, want: `{"miles":"three"}`, asked: 1},
		"a mechanic that is away mends nothing":     {name: "go", args: `{"miles":"three"}`, err: errors.New("away"), want: `{"miles":"three"}`, asked: 1},
		"a tool that nobody knows cannot be helped": {name: "fly", args: `{"miles":"three"}`, want: `{"miles":"three"}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			m := &mechanic{says: tc.says, err: tc.err}
			core := func(context.Context, *middleware.Turn) (model.Response, error) {
				return model.Response{Finish: step.FinishCalls, Calls: []model.Call{{Name: tc.name, Args: tc.args}}, Usage: step.Usage{InputTokens: 10}}, nil
			}
			var charged step.Usage
			turn := &middleware.Turn{Charge: func(u step.Usage) { charged = charged.Plus(u) }}
			resp, err := repair.Layer(m, tools(t)).Model(core)(t.Context(), turn)
			if err != nil {
				t.Fatal(err)
			}
			if got := resp.Calls[0].Args; got != tc.want {
				t.Errorf("the arguments are %s, want %s", got, tc.want)
			}
			if len(m.asked) != tc.asked {
				t.Errorf("the mechanic was asked %d times, want %d", len(m.asked), tc.asked)
			}
			if tc.asked > 0 && tc.err == nil && charged.InputTokens != 5 {
				t.Errorf("what mending used is not counted: %+v", charged)
			}
		})
	}
}

// A model that writes nothing right does not make another one work without end.
func TestOnlySoManyCallsOfAnAnswerAreMended(t *testing.T) {
	m := &mechanic{says: `{"miles":3}`}
	core := func(context.Context, *middleware.Turn) (model.Response, error) {
		resp := model.Response{Finish: step.FinishCalls}
		for range 256 {
			resp.Calls = append(resp.Calls, model.Call{Name: "go", Args: `{"miles":"three"}`})
		}
		return resp, nil
	}
	charged := 0
	turn := &middleware.Turn{Charge: func(step.Usage) { charged++ }}
	resp, err := repair.Layer(m, tools(t)).Model(core)(t.Context(), turn)
	if err != nil || len(m.asked) != 8 || charged != 8 {
		t.Errorf("asked %d times, charged %d times, error %v", len(m.asked), charged, err)
	}
	if resp.Calls[7].Args != `{"miles":3}` || resp.Calls[8].Args != `{"miles":"three"}` {
		t.Errorf("the calls are %v", resp.Calls[7:9])
	}
}

func TestTheMechanicIsShownWhatItNeeds(t *testing.T) {
	m := &mechanic{says: "{}"}
	core := func(context.Context, *middleware.Turn) (model.Response, error) {
		return model.Response{Finish: step.FinishCalls, Calls: []model.Call{{Name: "go", Args: `{"miles":"three"}`}}}, nil
	}
	if _, err := repair.Layer(m, tools(t)).Model(core)(t.Context(), &middleware.Turn{Charge: func(step.Usage) {}}); err != nil {
		t.Fatal(err)
	}
	said := m.asked[0].Steps[0].Text()
	for _, part := range []string{"Tool: go", `"integer"`, `"three"`, "`miles` must be an integer"} {
		if !strings.Contains(said, part) {
			t.Errorf("it is not told %s:\n%s", part, said)
		}
	}
}
