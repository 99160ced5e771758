package inputtext

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// An Input is the input that texts read. It is safe for concurrent use.
type Input struct {
	typeOf func() (expr.Type, error)
	env    func() (*expr.Env, error)
}

// Of returns the input of a JSON Schema, whose defaults are filled in. Empty: it is any object.
func Of(of json.RawMessage) *Input {
	in := &Input{typeOf: sync.OnceValues(func() (expr.Type, error) { return typeOf(of) })}
	in.env = sync.OnceValues(func() (*expr.Env, error) {
		t, err := in.typeOf()
		if err != nil {
			return nil, err
		}
		return expr.CEL.NewEnv(map[string]expr.Type{"input": t})
	})
	return in
}

func typeOf(of json.RawMessage) (expr.Type, error) {
	if len(of) == 0 {
		return expr.Map(expr.Dyn()), nil
	}
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Others     json.RawMessage            `json:"additionalProperties"`
	}
	if json.Unmarshal(of, &s) == nil && s.Properties != nil && len(s.Properties) == 0 && len(s.Others) == 0 {
		return expr.Object("input", nil), nil // it declares that there is nothing
	}
	return expr.FromSchema("input", schema.Filled(of))
}

// Values are the values of an input. They are read as far as texts need them, and are not safe
// for concurrent use.
type Values struct {
	raw   json.RawMessage
	paths *template.Value
}

// NewValues returns the values of a JSON object; empty is the same as {}.
func NewValues(raw json.RawMessage) (*Values, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		raw = json.RawMessage("{}")
	}
	if !json.Valid(raw) {
		const most = 200
		return nil, fmt.Errorf("the input is not JSON: %q", raw[:min(len(raw), most)])
	}
	return &Values{raw: raw, paths: template.NewValue(raw)}, nil
}

// Bind returns a text with the values of an input of a schema, as [Of] takes it.
func Bind(text string, of, raw json.RawMessage) (string, error) {
	t, err := Of(of).Parse(text, MayLack)
	if err != nil {
		return "", err
	}
	values, err := NewValues(raw)
	if err != nil {
		return "", err
	}
	return t.Bind(values, plain)
}

// Check compiles a text for an input of a schema, as [Of] takes it.
func Check(text string, of json.RawMessage) error {
	t, err := Of(of).Parse(text, MayLack)
	if err != nil {
		return err
	}
	return t.Compile()
}

func plain(value json.RawMessage) (string, error) { return template.Text(value), nil }
