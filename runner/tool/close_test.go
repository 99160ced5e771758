package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// both is a tool whose calls differ in effect, and which has a canonical form.
type both struct{ tool.Tool }

func (both) EffectOf(json.RawMessage) tool.Effect { return tool.ReadOnly }

func (both) Canonical(context.Context, json.RawMessage) (json.RawMessage, *tool.Error) {
	return json.RawMessage(`{"name":"canonical"}`), nil
}

func TestWithCloseKeepsWhatTheToolIs(t *testing.T) {
	closed := 0
	made := tool.WithClose(both{lower()}, func() error { closed++; return errors.New("stuck") })
	if got := tool.EffectOf(made, nil); got != tool.ReadOnly || made.Spec().Name != "lower" {
		t.Errorf("it is %s of effect %s", made.Spec().Name, got)
	}
	if got, _ := tool.Canonical(t.Context(), made, json.RawMessage(`{}`)); string(got) != `{"name":"canonical"}` {
		t.Errorf("its canonical arguments are %s", got)
	}
	wrapped := tool.WithCanonical(made, func(_ context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) { return args, nil })
	c, ok := wrapped.(io.Closer)
	if !ok {
		t.Fatal("with a canonical form it is no io.Closer")
	}
	if err := c.Close(); err == nil || err.Error() != "stuck" || closed != 1 {
		t.Errorf("it is closed %d times: %v", closed, err)
	}
	if err := lower().(io.Closer).Close(); err != nil {
		t.Errorf("closing a tool that holds nothing: %v", err)
	}
}
