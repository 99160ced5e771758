package inputtext

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// An Expression is an expression of a text. It is safe for concurrent use.
type Expression struct {
	input        *Input
	source       string
	isRewritten  bool // source is not as in the text
	line, column int  // of its first character
	indent       int  // white space before it
	omits        bool // it may have no value

	path   template.Path
	isPath bool

	once    sync.Once
	program *expr.Program
	err     error
}

// String returns it as it is written.
func (e *Expression) String() string { return strings.TrimSpace(e.source) }

// compile compiles it once.
func (e *Expression) compile() (*expr.Program, error) {
	e.once.Do(func() {
		env, err := e.input.env()
		if err != nil {
			e.err = err
			return
		}
		want := expr.Dyn()
		if e.omits {
			want = expr.Optional(want)
		}
		program, wrong := env.Compile(e.source, want)
		if wrong != nil {
			e.err = e.explain(wrong)
			return
		}
		e.program = program
	})
	return e.program, e.err
}

// explain returns an error of compiling it, with its position in the text.
func (e *Expression) explain(wrong *expr.Error) error {
	if e.isRewritten {
		return e.errorf("%s", wrong.Message)
	}
	moved := wrong.At(e.line, e.column)
	moved.Expression = "" // the position is enough
	if !strings.Contains(e.source, "input") {
		moved.Message += template.LiteralHint
	}
	return moved
}

// errorf returns an error at its position.
func (e *Expression) errorf(format string, args ...any) *expr.Error {
	return &expr.Error{Line: e.line, Column: e.column + e.indent, Message: fmt.Sprintf(format, args...)}
}

// Find returns its value as JSON, and whether there is one. An expression that needs a value
// and has none is an error.
func (e *Expression) Find(v *Values) (value json.RawMessage, found bool, err error) {
	if !e.isPath {
		return e.eval(v)
	}
	value, found = v.paths.At(e.path)
	if found || e.omits {
		return value, found, nil
	}
	t, err := e.input.typeOf()
	if err != nil {
		return nil, false, err
	}
	return nil, false, e.errorf("%s", t.NoValue(e.path))
}

// eval evaluates it with CEL.
func (e *Expression) eval(v *Values) (json.RawMessage, bool, error) {
	program, err := e.compile()
	if err != nil {
		return nil, false, err
	}
	value, found, err := program.Find(map[string]any{"input": v.raw})
	if wrong, ok := errors.AsType[*expr.Error](err); ok {
		return nil, false, wrong.At(e.line, e.column)
	}
	return value, found, err
}

// write returns its value as place writes it.
func (e *Expression) write(v *Values, place func(json.RawMessage) (string, error)) (string, error) {
	value, found, err := e.Find(v)
	if err != nil {
		return "", err
	}
	if !found {
		return "", e.errorf("%s has no value", e)
	}
	written, err := place(value)
	if err != nil {
		return "", e.errorf("%s %v", e, err)
	}
	return written, nil
}
