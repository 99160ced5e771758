package expr

import (
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// MaxTemplateExpressions is the maximum number of expressions in a template.
const MaxTemplateExpressions = 256

// A Template is a compiled text with expressions in ${{ }}. It is safe for concurrent
// use.
type Template struct {
	segments []segment
	paths    []path
}

// A segment is text and the program whose value follows it, if any.
type segment struct {
	words        string
	program      *Program
	line, column int // of the first character of the expression
}

// Template compiles a text with expressions in ${{ }}. Each may have any type that is
// not optional. A literal ${{ is written $${{.
func (e *Env) Template(text string) (*Template, *Error) {
	parts, err := template.Scan(text)
	if unclosed, ok := errors.AsType[*template.Error](err); ok {
		return nil, &Error{Expression: shorten(unclosed.Rest()), Line: unclosed.Line, Column: unclosed.Column, Message: unclosed.Message}
	}
	t := &Template{segments: make([]segment, 0, len(parts))}
	compiled := map[string]*Program{}
	for i, part := range parts {
		s := segment{words: part.Words, line: part.Line, column: part.Column + len("${{")}
		if !part.HasExpression {
			t.segments = append(t.segments, s)
			continue
		}
		if i >= MaxTemplateExpressions {
			return nil, &Error{Line: s.line, Column: s.column, Message: fmt.Sprintf("a text has at most %d expressions", MaxTemplateExpressions)}
		}
		s.program = compiled[part.Expression]
		if s.program == nil {
			var wrong *Error
			if s.program, wrong = e.Compile(part.Expression, Dyn()); wrong != nil {
				return nil, wrong.At(s.line, s.column)
			}
			compiled[part.Expression] = s.program
			t.paths = append(t.paths, s.program.paths...)
		}
		t.segments = append(t.segments, s)
	}
	return t, nil
}

// locate moves the position of an error of an evaluation from the expression to the text.
func (s *segment) locate(err error) error {
	if wrong, ok := errors.AsType[*Error](err); ok {
		return wrong.At(s.line, s.column)
	}
	return err
}

// Nodes returns the fields of the variable nodes that its expressions read, sorted,
// without duplicates.
func (t *Template) Nodes() []string { return nodesOf(t.paths) }

// Expressions returns how many expressions the template has; 0 for nil.
func (t *Template) Expressions() int {
	if t == nil {
		return 0
	}
	n := 0
	for _, s := range t.segments {
		if s.program != nil {
			n++
		}
	}
	return n
}

// Selects reports whether any of its expressions selects a path, as [Program.Selects] does.
func (t *Template) Selects(path ...string) bool { return selects(t.paths, path) }

// Text returns the text with the values: strings unchanged, all others as JSON. Values
// are not evaluated again. More than limit bytes are a [*TooLongError].
func (t *Template) Text(vars map[string]any, limit int) (string, error) {
	w := writer{limit: limit, values: map[*Program]string{}}
	for _, s := range t.segments {
		w.words += len(s.words)
		w.put(s.words)
		if s.program == nil {
			continue
		}
		value, ok := w.values[s.program]
		if !ok {
			var err error
			if value, err = s.program.text(vars); err != nil {
				return "", s.locate(err)
			}
			w.cacheValue(s.program, value)
		}
		w.put(value)
	}
	if w.length > limit {
		return "", w.tooLong()
	}
	return w.b.String(), nil
}

// text returns the value in the form for a text.
func (p *Program) text(vars map[string]any) (string, error) {
	raw, err := p.Eval(vars)
	return template.Text(raw), err
}

// A writer assembles a text up to a limit.
type writer struct {
	b       strings.Builder
	limit   int
	length  int // also of what exceeds the limit
	words   int // the part of length that is not from values
	values  map[*Program]string
	longest *Program
	bytes   int // of the longest
}

func (w *writer) put(s string) {
	w.length += len(s)
	if w.length <= w.limit {
		w.b.WriteString(s)
	}
}

// cacheValue stores a value for its next use, unless it exceeds the limit.
func (w *writer) cacheValue(p *Program, value string) {
	if w.longest == nil || len(value) > w.bytes {
		w.longest, w.bytes = p, len(value)
	}
	if len(value) <= w.limit {
		w.values[p] = value
	}
}

func (w *writer) tooLong() *TooLongError {
	if w.longest == nil || w.words > w.limit {
		return &TooLongError{Bytes: w.words, Limit: w.limit}
	}
	return &TooLongError{Expression: strings.TrimSpace(w.longest.source.text), Bytes: w.bytes, Limit: w.limit}
}
