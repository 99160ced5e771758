package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/hook"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func textStep(role step.Role, seq int64, text string) step.Step {
	return step.Step{Seq: seq, Role: role, Parts: []step.Part{{Kind: step.PartThinking, Text: "hm"}, {Kind: step.PartText, Text: text}}}
}

// answer is what the model says: text around a thought, and two calls.
func answer() model.Response {
	return model.Response{
		Parts:  []step.Part{{Kind: step.PartText, Text: "a"}, {Kind: step.PartThinking, Text: "hm"}, {Kind: step.PartText, Text: "b"}},
		Calls:  []model.Call{{Name: "ls", Args: `{"path":"/"}`}, {Name: "rm", Args: `{oops`}},
		Finish: step.FinishCalls, Usage: step.Usage{InputTokens: 7},
	}
}

// An answered is an answer, with what hooks did around it.
type answered struct {
	model.Response
	Hooks []step.Hook
}

// ask asks the model through a layer; what is said to it is a step as the loop
// would add it.
func ask(t *testing.T, l middleware.Layer, steps ...step.Step) (a answered, told []string, err error) {
	t.Helper()
	ctx, report := callreport.New(t.Context())
	turn := &middleware.Turn{Scope: step.Scope{Agent: "a"}, Request: &model.Request{Steps: steps}}
	turn.Say = func(text string, note step.Note) error {
		s := textStep(step.RoleUser, int64(len(turn.Request.Steps))+1, text)
		s.Note = note
		turn.Request.Steps = append(turn.Request.Steps, s)
		return nil
	}
	resp, err := l.Model(func(ctx context.Context, t *middleware.Turn) (model.Response, error) {
		for _, s := range t.Request.Steps {
			told = append(told, strings.TrimSpace(fmt.Sprint(s.Role, " ", s.Note, " ", s.Text())))
		}
		callreport.AddHook(ctx, step.Hook{Name: "inner"})
		return answer(), nil
	})(ctx, turn)
	return answered{resp, report.Hooks()}, told, err
}

const headA = `{"version":1,"hook":"%s","point":"%s","run":{"namespace":"ns","name":"run","uid":"u1"},"user":"ann","scope":{"agent":"a"},`

func TestHooksAroundTheModel(t *testing.T) {
	s := startService(t)
	result := textStep(step.RoleTool, 3, "found")
	result.Name, result.IsError = "grep", true
	resp, told, err := ask(t, layer(
		s.hook("a", hook.BeforeModel, `{"say":"It is Monday."}`),
		s.hook("b", hook.BeforeModel, `{"say":""}`),
		s.hook("c", hook.AfterModel, `{"text":"better","drop":[0]}`),
		s.hook("d", hook.AfterModel, ""),
	), textStep(step.RoleUser, 1, "do it"), textStep(step.RoleAssistant, 2, "I look"), result)
	if err != nil {
		t.Fatalf("asking: %v", err)
	}
	const newMessages = `"messages":[{"role":"tool","name":"grep","isError":true,"text":"found"}`
	expect(t, "what hooks were told", []string{
		fmt.Sprintf(headA, "a", hook.BeforeModel) + `"step":4,` + newMessages + `]}`,
		fmt.Sprintf(headA, "b", hook.BeforeModel) + `"step":5,` + newMessages + `,{"role":"user","note":"hook","text":"It is Monday."}]}`,
		fmt.Sprintf(headA, "c", hook.AfterModel) + `"step":5,"text":"ab","calls":[{"name":"ls","args":{"path":"/"}},{"name":"rm","args":"{oops"}]}`,
		fmt.Sprintf(headA, "d", hook.AfterModel) + `"step":5,"text":"better","calls":[{"name":"rm","args":"{oops"}]}`,
	}, s.asked)
	expect(t, "what the model was told", []string{"user  do it", "assistant  I look", "tool  found", "user hook It is Monday."}, told)
	expect(t, "the answer", model.Response{
		Parts:  []step.Part{{Kind: step.PartText, Text: "better"}, {Kind: step.PartThinking, Text: "hm"}},
		Calls:  []model.Call{{Name: "rm", Args: `{oops`}},
		Finish: step.FinishCalls, Usage: step.Usage{InputTokens: 7},
	}, resp.Response)
	expect(t, "what hooks did", []string{"a BeforeModel Changed", "b BeforeModel Allowed", "inner", "c AfterModel Changed", "d AfterModel Allowed"}, did(resp.Hooks))
}

func TestAnswersAfterTheModel(t *testing.T) {
	thought := step.Part{Kind: step.PartThinking, Text: "hm"}
	cases := map[string]struct {
		answer string
		text   string
		parts  int
		calls  int
		finish step.Finish
		did    string
	}{
		"no text":                    {`{"text":""}`, "", 1, 2, step.FinishCalls, "Changed"},
		"no call":                    {`{"drop":[1,0,1]}`, "ab", 3, 0, step.FinishStop, "Changed"},
		"nothing dropped":            {`{"drop":[]}`, "ab", 3, 2, step.FinishCalls, "Allowed"},
		"a call that is not there":   {`{"drop":[2],"text":"x"}`, "ab", 3, 2, step.FinishCalls, "Failed it dropped the call 2 of 2"},
		"a call before the first":    {`{"drop":[-1]}`, "ab", 3, 2, step.FinishCalls, "Failed it dropped the call -1 of 2"},
		"calls that are no numbers":  {`{"drop":["ls"],"text":"x"}`, "ab", 3, 2, step.FinishCalls, "Failed its answer makes no sense: drop cannot be of type string"},
		"a text where there was one": {`{"text":"c"}`, "c", 2, 2, step.FinishCalls, "Changed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := startService(t)
			h := s.hook("h", hook.AfterModel, tc.answer)
			h.Ignore = true
			resp, _, err := ask(t, layer(h), textStep(step.RoleUser, 1, "do it"))
			if err != nil {
				t.Fatalf("asking: %v", err)
			}
			text, thoughts := "", 0
			for _, p := range resp.Parts {
				if p.Kind == step.PartText {
					text += p.Text
				} else if p.Text == thought.Text {
					thoughts++
				}
			}
			if text != tc.text || thoughts != 1 || len(resp.Parts) != tc.parts || len(resp.Calls) != tc.calls || resp.Finish != tc.finish {
				t.Errorf("got %+v", resp)
			}
			expect(t, "what the hook did", "h AfterModel "+tc.did, did(resp.Hooks)[1])
		})
	}
}

// A part of a call goes with its call.
func TestADroppedCallLosesItsPart(t *testing.T) {
	s := startService(t)
	data := func(s string) step.Part { return step.Part{Kind: step.PartCall, Provider: json.RawMessage(s)} }
	said := step.Part{Kind: step.PartText, Text: "a"}
	f := layer(s.hook("h", hook.AfterModel, `{"drop":[1,3]}`)).Model(func(context.Context, *middleware.Turn) (model.Response, error) {
		return model.Response{
			Parts: []step.Part{data(`1`), said, data(`2`), data(`3`)}, Finish: step.FinishCalls,
			Calls: []model.Call{{Name: "a"}, {Name: "b"}, {Name: "c"}, {Name: "d"}},
		}, nil
	})
	resp, err := f(t.Context(), &middleware.Turn{})
	if err != nil {
		t.Fatal(err)
	}
	expect(t, "the parts", []step.Part{data(`1`), said, data(`3`)}, resp.Parts)
	expect(t, "the calls", []model.Call{{Name: "a"}, {Name: "c"}}, resp.Calls)
}

func TestATextWhereThereWasNone(t *testing.T) {
	s := startService(t)
	f := layer(s.hook("h", hook.AfterModel, `{"text":"c"}`)).Model(func(context.Context, *middleware.Turn) (model.Response, error) {
		return model.Response{}, nil
	})
	resp, err := f(t.Context(), &middleware.Turn{})
	if err != nil || len(resp.Parts) != 1 || resp.Parts[0].Text != "c" {
		t.Errorf("got %+v, %v", resp, err)
	}
}

// pass brings a layer to a point that has no result to tell a refusal in.
func pass(t *testing.T, l middleware.Layer, point string) ([]step.Hook, error) {
	t.Helper()
	if point == hook.BeforeSession {
		ctx, report := callreport.New(t.Context())
		err := l.Start(ctx, &middleware.SessionStart{})
		return report.Hooks(), err
	}
	resp, _, err := ask(t, l, textStep(step.RoleUser, 1, "do it"))
	if point == hook.AfterModel && resp.Usage.InputTokens != 7 {
		t.Errorf("what the answer used is lost: %+v", resp)
	}
	return slices.DeleteFunc(resp.Hooks, func(h step.Hook) bool { return h.Name == "inner" }), err
}

var noResult = []string{hook.BeforeSession, hook.BeforeModel, hook.AfterModel}

func TestForbidding(t *testing.T) {
	for _, point := range noResult {
		t.Run(point, func(t *testing.T) {
			s := startService(t)
			never := s.hookBy("never", point, func(http.ResponseWriter, *http.Request) { t.Error("the hook after a veto was asked") })
			hooks, err := pass(t, layer(s.hook("h", point, `{"allow":false,"reason":"no"}`), never), point)
			if veto, ok := errors.AsType[*middleware.VetoError](err); !ok || veto.By != "the hook h" || veto.Reason != "no" {
				t.Errorf("the error is %v", err)
			}
			expect(t, "what hooks did", []string{"h " + point + " Vetoed no"}, did(hooks))
		})
	}
}

func TestAHookThatCannotBeAsked(t *testing.T) {
	for _, point := range noResult {
		t.Run(point, func(t *testing.T) {
			s := startService(t)
			broken, next := s.hook("h", point, `x`), s.hook("i", point, "")
			_, err := pass(t, layer(broken, next), point)
			if gone, ok := errors.AsType[*hook.UnavailableError](err); !ok || gone.Hook != "h" || gone.Point != point {
				t.Errorf("the error is %v", err)
			}
			if want := "the hook h could not be asked at " + point + ": its answer is no JSON object"; err == nil || err.Error() != want {
				t.Errorf("the error is %v, want %s", err, want)
			}
			expect(t, "how many hooks were asked", 1, len(s.asked))

			broken.Ignore = true
			hooks, err := pass(t, layer(broken, next), point)
			if err != nil {
				t.Errorf("ignored: %v", err)
			}
			expect(t, "what hooks did", []string{"h " + point + " Failed its answer is no JSON object", "i " + point + " Allowed"}, did(hooks))
		})
	}
}

func TestAHookIsSentOnlyNewStepsWithABound(t *testing.T) {
	s := startService(t)
	steps := []step.Step{textStep(step.RoleUser, 1, "old"), textStep(step.RoleAssistant, 2, "old")}
	for i := range int64(100) {
		steps = append(steps, textStep(step.RoleTool, 3+i, fmt.Sprintf("new %d %s", i, strings.Repeat("x", 100_000))))
	}
	if _, _, err := ask(t, layer(s.hook("h", hook.BeforeModel, "")), steps...); err != nil {
		t.Fatalf("asking: %v", err)
	}
	got := s.asked[0]
	if strings.Contains(got, "old") || strings.Contains(got, "new 67 ") || !strings.Contains(got, "new 68 ") || !strings.Contains(got, "new 99 ") || len(got) > 600_000 {
		t.Errorf("told %d bytes: %.300s …", len(got), got)
	}
}

func TestAMessageThatCannotBeAddedEndsTheTurn(t *testing.T) {
	s := startService(t)
	full := errors.New("disk full")
	turn := &middleware.Turn{Request: &model.Request{}, Say: func(string, step.Note) error { return full }}
	_, err := layer(s.hook("h", hook.BeforeModel, `{"say":"x"}`)).Model(func(context.Context, *middleware.Turn) (model.Response, error) {
		t.Error("the model was asked")
		return model.Response{}, nil
	})(t.Context(), turn)
	if !errors.Is(err, full) {
		t.Errorf("the error is %v", err)
	}
}

func TestHooksAroundASession(t *testing.T) {
	s := startService(t)
	l := layer(
		s.hook("a", hook.BeforeSession, `{"prompt":"do it well"}`), s.hook("b", hook.BeforeSession, ""),
		s.hook("c", hook.AfterSession, `{"allow":false}`), s.hook("d", hook.AfterSession, `nonsense`), s.hook("e", hook.AfterSession, ""),
	)
	o := middleware.SessionStart{Scope: step.Scope{Agent: "a"}, Prompt: "do it"}
	ctx, report := callreport.New(t.Context())
	if err := l.Start(ctx, &o); err != nil {
		t.Fatalf("Start: %v", err)
	}
	expect(t, "the prompt", "do it well", o.Prompt)
	expect(t, "what hooks did", []string{"a BeforeSession Changed", "b BeforeSession Allowed"}, did(report.Hooks()))

	err := l.Stop(t.Context(), middleware.SessionEnd{Scope: step.Scope{Agent: "a"}, Reason: "Finished", Text: "done"})
	if err == nil || err.Error() != "the hook d could not be asked at AfterSession: its answer is no JSON object" {
		t.Errorf("Stop() = %v", err)
	}
	expect(t, "what hooks were told", []string{
		fmt.Sprintf(headA, "a", hook.BeforeSession) + `"prompt":"do it"}`,
		fmt.Sprintf(headA, "b", hook.BeforeSession) + `"prompt":"do it well"}`,
		fmt.Sprintf(headA, "c", hook.AfterSession) + `"reason":"Finished","text":"done"}`,
		fmt.Sprintf(headA, "d", hook.AfterSession) + `"reason":"Finished","text":"done"}`,
		fmt.Sprintf(headA, "e", hook.AfterSession) + `"reason":"Finished","text":"done"}`,
	}, s.asked)
}

func TestAnEmptyPromptIsNone(t *testing.T) {
	s := startService(t)
	o := middleware.SessionStart{Prompt: "do it"}
	err := layer(s.hook("h", hook.BeforeSession, `{"prompt":""}`)).Start(t.Context(), &o)
	if _, ok := errors.AsType[*hook.UnavailableError](err); !ok || o.Prompt != "do it" {
		t.Errorf("Start() = %v, the prompt is %q", err, o.Prompt)
	}
}
