package hook_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/hook"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestCredentials(t *testing.T) {
	cases := map[string]struct {
		key  func() (string, error)
		want string
	}{
		"a key":             {func() (string, error) { return "t0ken", nil }, "Allowed"},
		"a key not there":   {func() (string, error) { return "", errors.New("no such file") }, "Failed reading the key k of the Secret sec: no such file"},
		"an empty key":      {func() (string, error) { return "", nil }, "Failed the key k of the Secret sec is empty"},
		"nobody reads keys": {nil, "Failed the key k of the Secret sec cannot be read here"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := startService(t)
			h, other := s.hook("h", hook.BeforeTool, ""), s.hook("other", hook.AfterTool, "")
			h.Secret, h.Key, h.Ignore = "sec", "k", true
			o := hook.Options{Redact: func(text string) string { return strings.ReplaceAll(text, "t0ken", "‹secret›") }}
			if tc.key != nil {
				o.Key = func(k task.SecretKey) func() (string, error) {
					expect(t, "the key that is read", task.SecretKey{Secret: "sec", Key: "k"}, k)
					return tc.key
				}
			}
			r, _ := call(t, hook.Layer([]task.Hook{h, other}, o), write)
			expect(t, "what the hook did", "h BeforeTool "+tc.want, did(r.Hooks)[0])
			var sent []string
			for _, header := range s.headers {
				sent = append(sent, header.Get("Authorization"))
			}
			want := []string{""}
			if tc.want == "Allowed" {
				want = []string{"Bearer t0ken", ""}
			}
			expect(t, "the credentials that were sent", want, sent)
		})
	}
}

func TestSecretsStayInside(t *testing.T) {
	s := startService(t)
	const secret = "s3cr3t-value"
	hooks := []task.Hook{
		s.hook("a", hook.BeforeTool, `{"reason":"`+secret+`"}`), s.hook("b", hook.AfterTool, `{"allow":false,"reason":"`+secret+`"}`),
		s.hook("c", hook.BeforeSession, ""), s.hook("d", hook.AfterSession, ""), s.hook("e", hook.BeforeModel, ""), s.hook("f", hook.AfterModel, ""),
	}
	l := hook.Layer(hooks, hook.Options{Redact: func(text string) string { return strings.ReplaceAll(text, secret, "‹secret›") }})
	r, _ := call(t, l, tool.Call{Args: json.RawMessage(`{"key":"` + secret + `"}`)})
	_ = l.Start(t.Context(), &middleware.SessionStart{Prompt: secret})
	_ = l.Stop(t.Context(), middleware.SessionEnd{Text: secret})
	user := step.Step{Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: secret}}}
	_, _ = l.Model(func(context.Context, *middleware.Turn) (model.Response, error) {
		return model.Response{Parts: user.Parts, Calls: []model.Call{{Name: secret, Args: secret}, {Args: `{"key":"\u0073\u0033cr3t-value"}`}}}, nil
	})(t.Context(), &middleware.Turn{Request: &model.Request{Steps: []step.Step{user}}})
	if got := fmt.Sprint(s.asked, r.Render(), r.Hooks); len(s.asked) != 6 || strings.Contains(got, secret) || strings.Contains(got, `\u0073`) {
		t.Errorf("asked %d times; all that was said:\n%s", len(s.asked), got)
	}
}
