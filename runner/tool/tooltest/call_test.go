package tooltest_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/tool"
	"github.com/deckhand-dev/deckhand/runner/tool/tooltest"
)

// greet is a tool that uses all of a call.
func greet() tool.Tool {
	type in struct {
		Name string `json:"name"`
	}
	made := tool.Typed(tool.Spec{Name: "Greet"}, func(ctx context.Context, c tool.Call, in in) (tool.Result, error) {
		c.Emit("greeting " + in.Name)
		if c.Session.HasPolicy() || !c.Session.Allows(ctx, "Read", nil) || c.Session.Authorize(ctx, c.Args) != nil {
			return tool.Result{}, errors.New("there is a policy")
		}
		if in.Name == "you" {
			_, err := c.Session.Ask(ctx, tool.Question{Call: c.ID, Text: "Who are you?"})
			return tool.Result{}, err
		}
		return tool.Result{Text: c.Name + " " + c.ID + " " + string(c.Args)}, nil
	})
	made.Canonicalize = func(_ context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
		if string(args) == `{"name":""}` {
			return nil, &tool.Error{Message: "The name is empty: give one."}
		}
		return json.RawMessage(strings.ToLower(string(args))), nil
	}
	return made
}

func TestCall(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"Ada"}`: `Greet call-1 {"name":"ada"}`,
		`{"name":""}`:    "Error: The name is empty: give one.",
	} {
		if result, err := tooltest.Call(t, greet(), args); err != nil || result.Render() != want {
			t.Errorf("for %s the result is %q, %v, want %q", args, result.Render(), err, want)
		}
	}
	for _, args := range []string{`{"name":7}`, `{}`, `no JSON`} {
		if result, err := tooltest.Call(t, greet(), args); err != nil || result.Error == nil {
			t.Errorf("%s is not refused: %+v, %v", args, result, err)
		}
	}
	if result, err := tooltest.Call(t, greet(), `{"name":"you"}`); err == nil {
		t.Errorf("a question without a user has the result %+v", result)
	}
}
