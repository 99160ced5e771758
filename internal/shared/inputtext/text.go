package inputtext

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// MaxText bounds a text with its values, in bytes: a large value may be named many times.
const MaxText = 1 << 20

// An Absence is what a text does about a path to a value that the input may lack. All other
// expressions that may have no value are refused, except where the text is omitted.
type Absence int

const (
	// MayLack accepts the path. Evaluation fails if there is no value.
	MayLack Absence = iota
	// MustHave refuses the path.
	MustHave
	// Omits accepts the path, and an expression without a value, if the text is nothing but
	// that: then the text is omitted.
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
func (in *Input) Parse(text string, a Absence) (*Text, error) {
	scanned, err := template.Scan(text)
	if unclosed, ok := errors.AsType[*template.Error](err); ok {
		return nil, &expr.Error{Line: unclosed.Line, Column: unclosed.Column, Message: unclosed.Message}
	}
	t := &Text{}
	for _, part := range scanned {
		p := Part{Words: part.Words}
		if part.HasExpression {
			if p.Value, err = in.expression(part, a == Omits && isAlone(scanned), a); err != nil {
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

// isAlone reports whether a text is one expression and nothing else.
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
func (in *Input) expression(part template.Part, omits bool, a Absence) (*Expression, error) {
	inner := strings.TrimLeft(part.Expression, " ")
	e := &Expression{
		input: in, source: part.Expression, omits: omits,
		line: part.Line, column: part.Column + len("${{"), indent: len(part.Expression) - len(inner),
	}
	path, ok := template.ParsePath(part.Expression)
	if !ok {
		return e, nil
	}
	t, err := in.typeOf()
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

// Alone returns the expression of a text that is nothing else and is omitted without a value;
// nil: the text has words, more expressions, or needs a value.
func (t *Text) Alone() *Expression {
	for _, part := range t.Parts {
		if part.Value != nil && part.Value.omits {
			return part.Value
		}
	}
	return nil
}

// Expressions returns how many of its expressions are compiled, because they are not paths.
func (t *Text) Expressions() int {
	n := 0
	for _, part := range t.Parts {
		if part.Value != nil && !part.Value.isPath {
			n++
		}
	}
	return n
}

// Compile compiles its expressions. The error is an [*expr.Error] with the first one that
// does not compile.
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
