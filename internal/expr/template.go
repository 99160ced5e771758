package expr

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// MaxPlaces is how many expressions a template may have.
const MaxPlaces = 256

// A Template is a text with expressions in ${{ }}, which was found to be good. It
// may be used by many at a time.
type Template struct {
	segments []place
	paths    []path
}

// A place is words, and then the value of a program, if any.
type place struct {
	words   string
	program *Program
	segment segment
}

// Template checks a text with expressions in ${{ }}. Each may have any type that
// is not optional. A literal ${{ is written $${{.
func (e *Env) Template(text string) (*Template, *Error) {
	segments, err := split(text)
	if err != nil {
		return nil, err
	}
	t := &Template{segments: make([]place, 0, len(segments))}
	compiled := map[string]*Program{}
	for i, s := range segments {
		if i >= MaxPlaces && s.found {
			return nil, &Error{Line: s.line, Column: s.column, Message: fmt.Sprintf("a text has at most %d expressions", MaxPlaces)}
		}
		if !s.found {
			t.segments = append(t.segments, place{words: s.words})
			continue
		}
		program := compiled[s.expression]
		if program == nil {
			if program, err = e.Compile(s.expression, Dyn()); err != nil {
				return nil, s.locate(err)
			}
			compiled[s.expression] = program
			t.paths = append(t.paths, program.paths...)
		}
		t.segments = append(t.segments, place{words: s.words, program: program, segment: s})
	}
	return t, nil
}

// locate moves what is wrong with an expression to its place in the text.
func (s *segment) locate(err *Error) *Error {
	if err.Line == 1 {
		err.Column += s.column - 1
	}
	err.Line += s.line - 1
	return err
}

// failed is locate for what went wrong with a value.
func (s *segment) failed(err error) error {
	if wrong, ok := errors.AsType[*Error](err); ok {
		return s.locate(wrong)
	}
	return err
}

// Nodes are the fields that its expressions select of the variable nodes, each
// once, in order.
func (t *Template) Nodes() []string { return nodesOf(t.paths) }

// Selects is [Program.Selects] of any of its expressions.
func (t *Template) Selects(path ...string) bool { return selects(t.paths, path) }

// Text is the text with the values: text as it is, all else as JSON. What is put
// in is not read again. More than limit bytes are a [*TooLongError].
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
				return "", s.segment.failed(err)
			}
			w.keep(s.program, value)
		}
		w.put(value)
	}
	if w.length > limit {
		return "", w.tooLong()
	}
	return w.b.String(), nil
}

// text is the value as it is put into a text.
func (p *Program) text(vars map[string]any) (string, error) {
	raw, err := p.Eval(vars)
	if err != nil {
		return "", err
	}
	var s string
	if raw[0] == '"' && json.Unmarshal(raw, &s) == nil {
		return s, nil
	}
	return string(raw), nil
}

// A writer puts a text together, as far as the limit allows.
type writer struct {
	b       strings.Builder
	limit   int
	length  int // also of what was not put in
	words   int // of it, how much is no value
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

// keep remembers a value for where it stands again, unless it can no longer be
// used.
func (w *writer) keep(p *Program, value string) {
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
