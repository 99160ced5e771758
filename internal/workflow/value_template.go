package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// A valueTemplate is a JSON value in which an object {cel: "..."} is replaced by the
// value of the expression. It is a literal, an expression, an object or a list.
type valueTemplate struct {
	literal    json.RawMessage // it has no expression
	expression bool            // it is program; nil: it does not compile
	program    *expr.Program
	fields     map[string]*valueTemplate
	items      []*valueTemplate
}

// maxValueDepth is the maximum depth of a valueTemplate.
const maxValueDepth = 32

// errCELObject is the error of an object with cel and other members.
var errCELObject = errors.New(`cel stands for an expression, and stands alone: write {cel: "..."}`)

// errTemplateInValue is the error of a string with ${{ }}, which only prompts and messages replace.
var errTemplateInValue = errors.New(`${{ }} is for prompts and messages, and would be text here: write {cel: "..."} for what an expression gives, {cel: "'...'"} where that text is meant`)

// A compileFunc compiles the expression at a path of a value, for example output.score
// or items[2]; want is its type.
type compileFunc func(path, text string, want expr.Type) *expr.Program

// parseValue parses a value with a type.
func parseValue(raw json.RawMessage, path string, want expr.Type, p compileFunc) (*valueTemplate, error) {
	if strings.Count(path, ".")+strings.Count(path, "[") > maxValueDepth {
		return nil, fmt.Errorf("%s is nested too deep; at most %d levels are allowed", path, maxValueDepth)
	}
	hasTemplate := template.Has(string(raw))
	if !hasTemplate && !bytes.Contains(raw, []byte("cel")) { // not even in a string; escaped letters are not supported
		return &valueTemplate{literal: compactJSON(raw)}, nil
	}
	switch bytes.TrimSpace(raw)[0] {
	case '{':
		return parseObject(raw, path, want, p)
	case '[':
		return parseList(raw, path, want, p)
	}
	if hasTemplate {
		return nil, fmt.Errorf("%s: %w", path, errTemplateInValue)
	}
	return &valueTemplate{literal: compactJSON(raw)}, nil
}

func parseObject(raw json.RawMessage, path string, want expr.Type, p compileFunc) (*valueTemplate, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", path, err)
	}
	if text, is := members["cel"]; is {
		var s string
		if json.Unmarshal(text, &s) != nil || len(members) > 1 || strings.TrimSpace(s) == "" {
			return nil, fmt.Errorf("%s: %w", path, errCELObject)
		}
		return &valueTemplate{expression: true, program: p(path, s, want)}, nil
	}
	if want.IsOptional() {
		want = want.Elem()
	}
	out := &valueTemplate{fields: map[string]*valueTemplate{}}
	for _, name := range sortedKeys(members) {
		var err error
		if out.fields[name], err = parseValue(members[name], path+"."+name, want.Field(name), p); err != nil {
			return nil, err
		}
	}
	return out.orLiteral(raw), nil
}

func parseList(raw json.RawMessage, path string, want expr.Type, p compileFunc) (*valueTemplate, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return nil, fmt.Errorf("%s is not JSON: %w", path, err)
	}
	if want.IsOptional() {
		want = want.Elem()
	}
	out := &valueTemplate{}
	for i, item := range items {
		t, err := parseValue(item, fmt.Sprintf("%s[%d]", path, i), want.Elem(), p)
		if err != nil {
			return nil, err
		}
		out.items = append(out.items, t)
	}
	return out.orLiteral(raw), nil
}

// orLiteral returns a literal if there is no expression in a template.
func (t *valueTemplate) orLiteral(raw json.RawMessage) *valueTemplate {
	for _, f := range t.fields {
		if f.literal == nil {
			return t
		}
	}
	for _, i := range t.items {
		if i.literal == nil {
			return t
		}
	}
	return &valueTemplate{literal: compactJSON(raw)}
}

func compactJSON(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}

// value evaluates a template, in the order of names.
func (t *valueTemplate) value(eval func(*expr.Program) (json.RawMessage, error)) (json.RawMessage, error) {
	switch {
	case t.expression:
		return eval(t.program)
	case t.fields != nil:
		return t.objectValue(eval)
	case t.items != nil:
		values := make([]json.RawMessage, len(t.items))
		for i, item := range t.items {
			var err error
			if values[i], err = item.value(eval); err != nil {
				return nil, err
			}
		}
		return encode(values)
	}
	return t.literal, nil
}

func (t *valueTemplate) objectValue(eval func(*expr.Program) (json.RawMessage, error)) (json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	for _, name := range sortedKeys(t.fields) {
		of := t.fields[name]
		v, err := of.value(eval)
		if err != nil {
			return nil, err
		}
		if of.expression && of.program.Type().IsOptional() && string(v) == "null" {
			continue // an absent value is left out
		}
		values[name] = v
	}
	return encode(values)
}

// encode encodes JSON without escapes for HTML.
func encode(v any) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding a value: %w", err)
	}
	return bytes.TrimSpace(out.Bytes()), nil
}

// valueType returns the type of the value of a template; name is the name of an object.
func (t *valueTemplate) valueType(name string) expr.Type {
	switch {
	case t.program != nil:
		return t.program.Type()
	case t.fields != nil:
		fields := map[string]expr.Type{}
		for field, of := range t.fields {
			fields[field] = of.valueType(name + "." + field)
		}
		return expr.Object(name, fields)
	case t.items != nil:
		return expr.List(expr.Dyn())
	}
	return typeOfLiteral(name, t.literal)
}

func typeOfLiteral(name string, literal json.RawMessage) expr.Type {
	switch c := literal[0]; {
	case c == '"':
		return expr.String()
	case c == 't' || c == 'f':
		return expr.Bool()
	case c == '[':
		return expr.List(expr.Dyn())
	case c == '{':
		var members map[string]json.RawMessage
		_ = json.Unmarshal(literal, &members) // the literal is JSON
		fields := map[string]expr.Type{}
		for field, of := range members {
			fields[field] = typeOfLiteral(name+"."+field, of)
		}
		return expr.Object(name, fields)
	case c == 'n':
		return expr.Dyn()
	case bytes.ContainsAny(literal, ".eE"):
		return expr.Double()
	}
	return expr.Int()
}
