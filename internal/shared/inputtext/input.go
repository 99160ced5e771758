// Package inputtext inserts values of an input into texts with expressions in ${{ }}: instructions, prompts and
// requests.
//
// An expression is CEL and reads input, whose type comes from a JSON Schema. A path, such as input.repo.name, is
// evaluated without CEL, which takes milliseconds to set up: most texts have only paths, and a runner starts in a few
// milliseconds. The value is the same as with CEL. All other expressions are compiled where they are used:
// [Text.Compile] compiles all expressions of a text, and an evaluation compiles the remaining ones.
//
// An inserted value is never read as an expression.
package inputtext

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
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

// Of returns the input that a JSON Schema describes. The values that it reads must have the defaults of the schema
// filled in. An empty schema describes any object.
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

// Bind returns a text with the values of the input raw inserted. The JSON Schema of the input is of; see [Of].
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

// MaxText bounds a text with its values, in bytes: a large value may be named many times.
const MaxText = 1 << 20

// An Absence selects what a text does about a path to a value that the input may lack. Other expressions that may have
// no value are refused, unless the text is omitted.
type Absence int

const (
	// MayLack accepts the path. Evaluation fails if there is no value.
	MayLack Absence = iota
	// MustHave refuses the path.
	MustHave
	// Omits accepts the path, or an expression without a value, if it is the whole text: then the text is omitted.
	Omits
)

// A Text is a text with expressions. Its parts never change.
type Text struct{ Parts []Part }

// A Part is a piece of a text: words, and then the value of an expression, if there is one.
type Part struct {
	Words string
	Value *Expression // nil: there is none
}

// Parse divides a text at its expressions, without CEL. The error is an [*expr.Error].
func (i *Input) Parse(text string, a Absence) (*Text, error) {
	scanned, err := template.Scan(text)
	if unclosed, ok := errors.AsType[*template.Error](err); ok {
		return nil, &expr.Error{Line: unclosed.Line, Column: unclosed.Column, Message: unclosed.Message}
	}
	t := &Text{}
	for _, part := range scanned {
		p := Part{Words: part.Words}
		if part.HasExpression {
			if p.Value, err = i.expression(part, a == Omits && isAlone(scanned), a); err != nil {
				return nil, err
			}
		}
		t.Parts = append(t.Parts, p)
		if t.isFull(p) {
			return nil, &expr.Error{Line: part.Line, Column: part.Column, Message: fmt.Sprintf("a text has at most %d expressions", expr.MaxTemplateExpressions)}
		}
	}
	return t, nil
}

// isFull reports whether the last part is one expression too many.
func (t *Text) isFull(last Part) bool {
	return last.Value != nil && !last.Value.isPath && len(t.Parts) > expr.MaxTemplateExpressions && t.Expressions() > expr.MaxTemplateExpressions
}

// isAlone reports whether a text consists of one expression.
func isAlone(parts []template.Part) bool {
	words, expressions := 0, 0
	for _, part := range parts {
		words += len(part.Words)
		if part.HasExpression {
			expressions++
		}
	}
	return words == 0 && expressions == 1
}

// expression reads an expression of a text.
func (i *Input) expression(part template.Part, omits bool, a Absence) (*Expression, error) {
	inner := strings.TrimLeft(part.Expression, " ")
	e := &Expression{
		input: i, source: part.Expression, omits: omits,
		line: part.Line, column: part.Column + len("${{"), indent: len(part.Expression) - len(inner),
	}
	path, ok := template.ParsePath(part.Expression)
	if !ok {
		return e, nil
	}
	t, err := i.typeOf()
	if err != nil {
		return nil, err
	}
	found, absent := t.Follow(path)
	switch {
	case !found && strings.Contains(part.Expression, `["`): // CEL has another way to write this
		if source, ok := path.CEL(); ok {
			e.source, e.isRewritten = source, true
		}
		return e, nil
	case !found:
		return e, nil
	case absent != "" && !omits && a != MayLack:
		wrong := e.errorf("%s", absent)
		wrong.Absent = true
		return nil, wrong
	}
	e.path, e.isPath = path, true
	return e, nil
}

// Alone returns the expression of a text that consists of it and is omitted without a value; nil: the text has words,
// more expressions, or needs a value.
func (t *Text) Alone() *Expression {
	for _, part := range t.Parts {
		if part.Value != nil && part.Value.omits {
			return part.Value
		}
	}
	return nil
}

// Expressions returns how many of its expressions are not paths and therefore compiled.
func (t *Text) Expressions() int {
	n := 0
	for _, part := range t.Parts {
		if part.Value != nil && !part.Value.isPath {
			n++
		}
	}
	return n
}

// Compile compiles its expressions. The error is an [*expr.Error] with the first expression that does not compile.
func (t *Text) Compile() error {
	for _, part := range t.Parts {
		if part.Value == nil || part.Value.isPath {
			continue
		}
		if _, err := part.Value.compile(); err != nil {
			return err
		}
	}
	return nil
}

// Bind returns the text with values, each as place writes it from its JSON. An expression
// without a value is an error.
func (t *Text) Bind(v *Values, place func(json.RawMessage) (string, error)) (string, error) {
	var b strings.Builder
	for _, part := range t.Parts {
		b.WriteString(part.Words)
		if part.Value == nil {
			continue
		}
		written, err := part.Value.write(v, place)
		if err != nil {
			return "", err
		}
		b.WriteString(written)
		if b.Len() > MaxText {
			return "", &expr.TooLongError{Expression: part.Value.String(), Bytes: len(written), Limit: MaxText}
		}
	}
	return b.String(), nil
}

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

// String returns the source of the expression.
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

// Find returns its value as JSON, and whether there is one. If an expression needs a value and has none, it returns an
// error.
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
