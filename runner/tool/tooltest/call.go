package tooltest

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// errNoSession is what the session of [Call] answers.
var errNoSession = errors.New("tooltest: a call of a test has no session; give tool.Call one of your own")

// Call calls a tool as the runner does: arguments that do not fit its schema or have no
// canonical form are refused with a result, and the tool is called with the canonical form.
// What the tool emits is in the log of the test. Its session has no policy, and Ask and
// Delegate return an error.
func Call(t *testing.T, made tool.Tool, args string) (tool.Result, error) {
	t.Helper()
	known, err := toolbox.New(made)
	if err != nil {
		t.Fatal(err)
	}
	name := made.Name
	given := known.Read(name, args)
	if wrong := known.Check(name, given); wrong != nil {
		return tool.Result{Error: wrong}, nil
	}
	form, wrong := made.CanonicalArgs(t.Context(), given)
	if wrong != nil {
		return tool.Result{Error: wrong}, nil
	}
	return made.Call(t.Context(), tool.Call{
		ID: "call-1", Name: name, Args: form, Session: noSession{},
		Emit: func(text string) { t.Logf("%s shows: %s", name, text) },
	})
}

// noSession is the session of a call that stands alone.
type noSession struct{}

func (noSession) Delegate(context.Context, tool.Delegation) (tool.Result, error) {
	return tool.Result{}, errNoSession
}

func (noSession) Ask(context.Context, tool.Question) (tool.Answer, error) {
	return tool.Answer{}, errNoSession
}

func (noSession) Authorize(context.Context, json.RawMessage) *tool.Error { return nil }

func (noSession) Allows(context.Context, string, json.RawMessage) bool { return true }

func (noSession) HasPolicy() bool { return false }
