package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// promptSchema is the schema of the input of an Agent that declares none.
var promptSchema = json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"],"additionalProperties":false}`)

// An inputSchema is the schema of the input of the Agent or Workflow of a node.
type inputSchema struct {
	what   string // for messages: the input of Agent "writer"
	schema json.RawMessage
	// open: other properties are allowed too.
	properties map[string]json.RawMessage
	required   []string
	open       bool
	promptOnly bool // the only property is prompt
}

// inputSchemaOf returns the schema of the input of a node; for an approval it is empty.
func (c *compiler) inputSchemaOf(n v1alpha1.Node) inputSchema {
	switch nested := c.nested[string(n.Workflow)]; {
	case nested != nil:
		return newInputSchema(fmt.Sprintf("the input of Workflow %q", n.Workflow), nested.input.schema)
	case n.Agent == "":
		return inputSchema{}
	}
	input := c.revision.Agents[string(n.Agent)].Input
	if input == nil {
		t := newInputSchema(fmt.Sprintf("Agent %q, which declares no input,", n.Agent), promptSchema)
		t.promptOnly = true
		if n.Prompt != "" {
			t.required = nil
		}
		return t
	}
	return newInputSchema(fmt.Sprintf("the input of Agent %q", n.Agent), input)
}

func newInputSchema(what string, input json.RawMessage) inputSchema {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	_ = json.Unmarshal(input, &s) // the schema is valid
	others := string(s.Additional)
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return hasDefault(s.Properties[name]) })
	return inputSchema{
		what: what, schema: input, properties: s.Properties, required: s.Required,
		open: others == "true" || strings.HasPrefix(others, "{") || len(s.Properties) == 0 && others != "false",
	}
}

// hasDefault reports whether a schema has a default.
func hasDefault(property json.RawMessage) bool {
	var s struct {
		Default json.RawMessage `json:"default"`
	}
	return json.Unmarshal(property, &s) == nil && s.Default != nil
}

// compileNodeInput compiles the input of a node and checks it against the schema: names,
// literals and the types of expressions.
func (c *compiler) compileNodeInput(out *node, s *scope) {
	n := out.spec
	if n.Approval != nil {
		return
	}
	t := c.inputSchemaOf(n)
	out.inputSchema = t.schema
	given := map[string]*valueTemplate{}
	if n.Input != nil {
		want, err := expr.FromSchema(c.typeName(n.Name, "input"), t.schema)
		if err != nil {
			c.fail("node %s: %s: %v", n.Name, t.what, err)
		}
		out.input = c.compileValue(location{n.Name, "input"}, s, n.Input.Raw, want)
		given = out.input.members()
	}
	if n.Prompt != "" && t.promptOnly && given["prompt"] != nil {
		c.fail("node %s: prompt and input.prompt are the same to %s; remove one of them", n.Name, t.what)
	}
	for _, name := range sortedKeys(given) {
		c.checkGiven(n, t, name, given[name])
	}
	for _, name := range t.required {
		if given[name] == nil {
			c.fail("node %s: input lacks %s, which %s requires; write input: {%s: ...}", n.Name, name, t.what, name)
		}
	}
}

// checkGiven checks one property of the input of a node.
func (c *compiler) checkGiven(n v1alpha1.Node, t inputSchema, name string, value *valueTemplate) {
	property, known := t.properties[name]
	switch {
	case !known && !t.open:
		c.fail("node %s: input.%s is not in %s; %s", n.Name, name, strings.TrimSuffix(t.what, ","), t.names())
	case known && value.literal != nil:
		if err := validateValue(name, property, value.literal); err != nil {
			c.fail("node %s: input does not fit %s: %v", n.Name, t.what, err)
		}
	}
}

// names lists the properties in a message.
func (i inputSchema) names() string {
	names := sortedKeys(i.properties)
	if len(names) == 0 {
		return "it has none"
	}
	const most = 10
	if len(names) > most {
		names = append(slices.Clip(names[:most]), "…")
	}
	return "it has " + strings.Join(names, ", ")
}

// members returns the members of an object.
func (t *valueTemplate) members() map[string]*valueTemplate {
	if t.literal == nil {
		return t.fields
	}
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(t.literal, &raw) // the literal is JSON
	out := map[string]*valueTemplate{}
	for name, value := range raw {
		out[name] = &valueTemplate{literal: value}
	}
	return out
}

// compiledInput is the input that a Workflow declares.
type compiledInput struct {
	schema json.RawMessage
	typ    expr.Type // as expressions read it, with defaults
}

// compileInput compiles the input of a Workflow; name is the name of its type.
func compileInput(name string, in *v1alpha1.Input) (compiledInput, *snapshot.NotReadyError) {
	if err := inputs.Check("spec.input", in); err != nil {
		return compiledInput{}, notReady(v1alpha1.ReasonInvalid, "%v", err)
	}
	out := compiledInput{schema: inputs.Schema(in)}
	if in == nil {
		out.typ = expr.Object(name, nil)
		return out, nil
	}
	var err error
	if out.typ, err = expr.FromSchema(name, schema.Filled(out.schema)); err != nil {
		return compiledInput{}, notReady(v1alpha1.ReasonInvalid, "spec.input: %v", err)
	}
	return out, nil
}

// validateValue validates one property of the input of a node.
func validateValue(name string, property, value json.RawMessage) error {
	wrapped, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return errors.New("it is not JSON")
	}
	of := inputs.Object(map[string]json.RawMessage{name: property}, []string{name})
	return schema.Validate(of, schema.Fill(of, wrapped))
}

// Input returns the input of a Run with the defaults of missing values. The error has
// the path of the invalid value.
func (p *Program) Input(given json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(given)) == 0 {
		given = json.RawMessage("{}")
	}
	filled := schema.Fill(p.input.schema, given)
	if err := schema.Validate(p.input.schema, filled); err != nil {
		return nil, err
	}
	return filled, nil
}

// CheckRun returns why the Workflow cannot execute a Run: a *snapshot.NotReadyError with the reason with which the Run
// ends, or nil.
func (p *Program) CheckRun(run v1alpha1.RunSpec) *snapshot.NotReadyError {
	if problem := snapshot.CheckInputSize(run); problem != nil {
		return problem
	}
	var given json.RawMessage
	if run.Input != nil {
		given = run.Input.Raw
	}
	if _, err := p.Input(given); err != nil {
		return notReady(v1alpha1.ReasonMisconfigured, "spec.input does not fit the input of Workflow %s: %v", run.Workflow, err)
	}
	return nil
}

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
