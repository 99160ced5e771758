// Package tooltest calls tools in tests as the runner does, and is the conformance suite of
// the optional fields of a tool.
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

// Canonical tests a tool against [tool.CanonicalFunc]. For each of the arguments, which must match the tool's schema,
// the canonical form matches the schema and is its own canonical form, byte for byte, and computing it does not change
// the arguments. Arguments that are refused must be refused each time.
func Canonical(t *testing.T, made tool.Tool, all ...string) {
	t.Helper()
	if made.Canonicalize == nil {
		t.Fatalf("%s has no Canonicalize", made.Name)
	}
	known, err := toolbox.New(made)
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range all {
		canonical(t, known, made, args)
	}
}

func canonical(t *testing.T, known *toolbox.Toolbox, made tool.Tool, args string) {
	t.Helper()
	name := made.Name
	if wrong := known.Check(name, json.RawMessage(args)); wrong != nil {
		t.Fatalf("%s %s: the arguments do not fit the schema: %s", name, args, wrong.Message)
	}
	given := json.RawMessage(args)
	once, refused := made.CanonicalArgs(t.Context(), given)
	if string(given) != args {
		t.Errorf("%s %s: Canonical changed the arguments that it was given to %s", name, args, given)
	}
	if refused != nil {
		if _, again := made.CanonicalArgs(t.Context(), given); again == nil {
			t.Errorf("%s %s: Canonical refused the arguments once and accepted them then", name, args)
		}
		return
	}
	if wrong := known.Check(name, once); wrong != nil {
		t.Errorf("%s %s: the canonical form %s does not fit the schema: %s", name, args, once, wrong.Message)
	}
	twice, refused := made.CanonicalArgs(t.Context(), once)
	switch {
	case refused != nil:
		t.Errorf("%s %s: the canonical form %s is refused: %s", name, args, once, refused.Message)
	case string(twice) != string(once):
		t.Errorf("%s %s: the canonical form %s has another canonical form, %s", name, args, once, twice)
	}
}
