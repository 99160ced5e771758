package workflow

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/expr"
)

// prompted is the schema of what an Agent takes that has none.
var prompted = json.RawMessage(`{"type":"object","properties":{"prompt":{"type":"string"}},"required":["prompt"],"additionalProperties":false}`)

// A taker is what a node gives its values to.
type taker struct {
	what   string // for people: the input of Agent "writer"
	schema json.RawMessage
	// properties are the values that it knows; open: it takes others too.
	properties map[string]json.RawMessage
	required   []string
	open       bool
	prompted   bool // all that it takes is a prompt
}

// taker is what a node gives its values to; an approval is none.
func (c *compiler) taker(n v1alpha1.Node) taker {
	switch nested := c.nested[string(n.Workflow)]; {
	case nested != nil:
		return newTaker(fmt.Sprintf("the input of Workflow %q", n.Workflow), nested.input.schema)
	case n.Agent == "":
		return taker{}
	}
	input := c.version.Agents[string(n.Agent)].Input
	if input == nil {
		t := newTaker(fmt.Sprintf("Agent %q, which declares no input,", n.Agent), prompted)
		t.prompted = true
		if n.Prompt != "" {
			t.required = nil
		}
		return t
	}
	return newTaker(fmt.Sprintf("the input of Agent %q", n.Agent), input)
}

func newTaker(what string, schema json.RawMessage) taker {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional json.RawMessage            `json:"additionalProperties"`
	}
	_ = json.Unmarshal(schema, &s) // it was checked
	others := string(s.Additional)
	s.Required = slices.DeleteFunc(s.Required, func(name string) bool { return hasDefault(s.Properties[name]) })
	return taker{
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

// compileNodeInput compiles what a node gives, and holds it to what is taken: names,
// literals and the types of expressions.
func (c *compiler) compileNodeInput(out *node, s *scope) {
	n := out.spec
	if n.Approval != nil {
		return
	}
	t := c.taker(n)
	out.takes = t.schema
	given := map[string]*tree{}
	if n.Input != nil {
		want, err := expr.FromSchema(c.typeName(n.Name, "input"), t.schema)
		if err != nil {
			c.fail(v1alpha1.ReasonNodeInvalid, "node %s: %s: %v", n.Name, t.what, err)
		}
		out.input = c.tree(place{n.Name, "input"}, s, n.Input.Raw, want)
		given = out.input.members()
	}
	if n.Prompt != "" && t.prompted && given["prompt"] != nil {
		c.fail(v1alpha1.ReasonNodeInvalid, "node %s: prompt and input.prompt are the same to %s; remove one of them", n.Name, t.what)
	}
	for _, name := range sortedKeys(given) {
		c.checkGiven(n, t, name, given[name])
	}
	for _, name := range t.required {
		if given[name] == nil {
			c.fail(v1alpha1.ReasonNodeInvalid, "node %s: input lacks %s, which %s requires; write input: {%s: ...}", n.Name, name, t.what, name)
		}
	}
}

// checkGiven holds one value to what is taken.
func (c *compiler) checkGiven(n v1alpha1.Node, t taker, name string, value *tree) {
	takes, known := t.properties[name]
	switch {
	case !known && !t.open:
		c.fail(v1alpha1.ReasonNodeInvalid, "node %s: input.%s is not in %s; %s", n.Name, name, strings.TrimSuffix(t.what, ","), t.names())
	case known && value.literal != nil:
		if err := fits(name, takes, value.literal); err != nil {
			c.fail(v1alpha1.ReasonNodeInvalid, "node %s: input does not fit %s: %v", n.Name, t.what, err)
		}
	}
}

// names lists what is taken, for people.
func (t taker) names() string {
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

// members are the parts of an object.
func (t *tree) members() map[string]*tree {
	if t.literal == nil {
		return t.fields
	}
	var raw map[string]json.RawMessage
	_ = json.Unmarshal(t.literal, &raw) // it is JSON
	out := map[string]*tree{}
	for name, value := range raw {
		out[name] = &tree{literal: value}
	}
	return out
}
