package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
)

// promptSchema is the schema of the input of an Agent without an input of its own.
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

// inputSchemaOf returns the schema of the input of a node; that of an approval is empty.
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

func newInputSchema(what string, schema json.RawMessage) inputSchema {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	_ = json.Unmarshal(schema, &s) // the schema is valid
	others := string(s.Additional)
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return hasDefault(s.Properties[name]) })
	return inputSchema{
		what: what, schema: schema, properties: s.Properties, required: s.Required,
		open: others == "true" || strings.HasPrefix(others, "{") || len(s.Properties) == 0 && others != "false",
	}
}

// hasDefault reports whether a schema has a default.
func hasDefault(schema json.RawMessage) bool {
	var s struct {
		Default json.RawMessage `json:"default"`
	}
	return json.Unmarshal(schema, &s) == nil && s.Default != nil
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
func (t inputSchema) names() string {
	names := sortedKeys(t.properties)
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
