package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	maxDepth = 32
	// maxSent is how many bytes of a body are sent.
	maxSent = 1 << 20
)

// A node is a part of a body: a literal value, a text with expressions, an array or an object.
type node struct {
	raw     json.RawMessage
	text    *inputtext.Text
	items   []node
	members []member
	kind    byte // 0 for a value or a text, else [ or {
}

type member struct {
	name json.RawMessage
	node node
}

// readBody parses the body.
func (p *plan) readBody(at string) error {
	if len(p.tool.Body) == 0 || string(p.tool.Body) == "null" {
		return nil
	}
	if p.tool.Method == http.MethodGet || p.tool.Method == http.MethodHead {
		return errorf(at, "is not sent with %s; write its values in query, or use POST", p.tool.Method)
	}
	n, err := p.node(at, p.tool.Body, 0)
	if err != nil {
		return err
	}
	p.body = &n
	return nil
}

// node parses one value.
func (p *plan) node(at string, raw json.RawMessage, depth int) (node, error) {
	raw = bytes.TrimSpace(raw)
	switch {
	case depth > maxDepth:
		return node{}, errorf(at, "is nested deeper than %d", maxDepth)
	case len(raw) == 0 || !json.Valid(raw):
		return node{}, errorf(at, "is no JSON")
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return node{}, errorf(at, "is no text")
		}
		t, err := p.text(at, text, inputtext.Omits)
		return node{text: t}, err
	case raw[0] == '[':
		return p.array(at, raw, depth)
	case raw[0] == '{':
		return p.object(at, raw, depth)
	}
	return node{raw: raw}, nil
}

func (p *plan) array(at string, raw json.RawMessage, depth int) (node, error) {
	var items []json.RawMessage
	if err := json.Unmarshal(raw, &items); err != nil {
		return node{}, errorf(at, "is no array")
	}
	n := node{kind: '['}
	for i, item := range items {
		one, err := p.node(fmt.Sprintf("%s[%d]", at, i), item, depth+1)
		if err != nil {
			return node{}, err
		}
		n.items = append(n.items, one)
	}
	return n, nil
}

// object parses an object and keeps the order of its members.
func (p *plan) object(at string, raw json.RawMessage, depth int) (node, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	_, _ = dec.Token() // the brace
	n := node{kind: '{'}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		if err != nil || !ok {
			return node{}, errorf(at, "is no object")
		}
		if template.Has(name) {
			return node{}, errorf(at, "has ${{ in the name of a member; only values are bound")
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return node{}, errorf(at, "is no object")
		}
		one, err := p.node(at+"."+name, value, depth+1)
		if err != nil {
			return node{}, err
		}
		quoted, _ := json.Marshal(name) // a string: cannot fail
		n.members = append(n.members, member{quoted, one})
	}
	return n, nil
}

// errAbsent means that an expression has no value, so that its place is left out.
var errAbsent = errors.New("it is not given")

// write writes a node with the values of its expressions.
func (n *node) write(to *bytes.Buffer, in *inputtext.Values) error {
	if to.Len() > maxSent {
		return &valueError{fmt.Sprintf("the body has more than %d KiB with these arguments; give less", maxSent>>10)}
	}
	switch {
	case n.kind == '[':
		return n.writeItems(to, in)
	case n.kind == '{':
		return n.writeMembers(to, in)
	case n.text == nil:
		_, err := to.Write(n.raw)
		return err
	}
	if alone := n.text.Alone(); alone != nil {
		value, ok, err := alone.Find(in)
		if err == nil && !ok {
			err = errAbsent
		}
		if err != nil {
			return err
		}
		return json.Compact(to, value)
	}
	text, err := n.text.Bind(in, plainText)
	if err != nil {
		return err
	}
	enc := json.NewEncoder(to)
	enc.SetEscapeHTML(false)
	err = enc.Encode(text)
	to.Truncate(to.Len() - 1) // the line end
	return err
}

// writeItems writes the items of a list.
func (n *node) writeItems(to *bytes.Buffer, in *inputtext.Values) error {
	to.WriteByte('[')
	for first, i := true, 0; i < len(n.items); i++ {
		if err := n.items[i].writeAfter(&first, nil, to, in); err != nil {
			return err
		}
	}
	to.WriteByte(']')
	return nil
}

// writeMembers writes the members of an object.
func (n *node) writeMembers(to *bytes.Buffer, in *inputtext.Values) error {
	to.WriteByte('{')
	for first, i := true, 0; i < len(n.members); i++ {
		if err := n.members[i].node.writeAfter(&first, n.members[i].name, to, in); err != nil {
			return err
		}
	}
	to.WriteByte('}')
	return nil
}

// writeAfter writes an item, or a member with its name, behind those before it. It writes nothing for an absent value.
func (n *node) writeAfter(first *bool, name []byte, to *bytes.Buffer, in *inputtext.Values) error {
	before := to.Len()
	if !*first {
		to.WriteByte(',')
	}
	if name != nil {
		to.Write(name)
		to.WriteByte(':')
	}
	switch err := n.write(to, in); {
	case errors.Is(err, errAbsent):
		to.Truncate(before)
	case err != nil:
		return err
	default:
		*first = false
	}
	return nil
}

// bindBody returns the body with its values; nil: there is none.
func (p *plan) bindBody(in *inputtext.Values) (io.Reader, error) {
	if p.body == nil {
		return nil, nil //nolint:nilnil // no body is none
	}
	var text bytes.Buffer
	switch err := p.body.write(&text, in); {
	case errors.Is(err, errAbsent):
		return nil, nil //nolint:nilnil // the body is an expression alone without a value
	case err != nil:
		return nil, err
	case text.Len() > maxSent:
		return nil, &valueError{fmt.Sprintf("the body has more than %d KiB with these arguments; give less", maxSent>>10)}
	}
	return bytes.NewReader(text.Bytes()), nil
}

// plainText returns a value within a longer text: a string without quotes, any other value as JSON.
func plainText(v json.RawMessage) (string, error) { return template.Text(v), nil }

// An InvalidError describes an error in a Toolset, with its path.
type InvalidError struct {
	// Path is the path of the field, such as requests.tools[1].path.
	Path string
	// Problem describes the error, and what to write instead.
	Problem string
}

func (e *InvalidError) Error() string { return e.Path + ": " + e.Problem }

func errorf(path, format string, args ...any) error {
	return &InvalidError{Path: path, Problem: fmt.Sprintf(format, args...)}
}

// Check returns an *InvalidError for the first error that prevents tools from being made of a Toolset, or nil. It opens
// no connection.
func Check(ts task.Toolset) error {
	plans, err := plansOf(ts)
	if err != nil {
		return err
	}
	expressions := 0
	for _, p := range plans {
		for _, t := range p.texts {
			if expressions += t.text.Expressions(); expressions > expr.MaxTemplateExpressions {
				return errorf(t.at, "is one expression too many; a Toolset has at most %d besides paths such as ${{ input.x }}", expr.MaxTemplateExpressions)
			}
			if err := t.text.Compile(); err != nil {
				return invalid(t.at, t.absence, err)
			}
		}
	}
	return nil
}

// plansOf parses a Toolset. Expressions are compiled when they are first used.
func plansOf(ts task.Toolset) ([]*plan, error) {
	r := ts.Requests
	if r == nil {
		return nil, errorf("requests", "is missing")
	}
	base, err := auth.ReadURL(r.BaseURL)
	switch {
	case err != nil:
		return nil, errorf("requests.baseURL", "%v", err)
	case base.RawQuery != "" || base.ForceQuery:
		return nil, errorf("requests.baseURL", "has a query; write its parameters in query of each tool")
	}
	err = auth.Check(r.Headers, r.Auth, "Idempotency-Key", "User-Agent")
	if at, ok := errors.AsType[*auth.FieldError](err); ok {
		return nil, errorf("requests."+at.Field, "%s", at.Problem)
	}
	plans, seen := make([]*plan, len(r.Tools)), map[string]bool{}
	for i, t := range r.Tools {
		at := fmt.Sprintf("requests.tools[%d]", i)
		if seen[t.Name] {
			return nil, errorf(at+".name", "is %q, and so is another; use different names", t.Name)
		}
		seen[t.Name] = true
		p := &plan{tool: t, base: base, input: input(t), values: inputtext.Of(input(t)), media: media(r.Headers)}
		if err := p.read(at); err != nil {
			return nil, err
		}
		plans[i] = p
	}
	return plans, nil
}

// media returns the media type of bodies.
func media(headers map[string]string) string {
	for name, value := range headers {
		if http.CanonicalHeaderKey(name) == "Content-Type" {
			return value
		}
	}
	return "application/json"
}

// nothing is the schema of a tool without arguments.
const nothing = `{"type":"object","properties":{}}`

func input(t task.RequestTool) json.RawMessage {
	if len(t.Input) == 0 || string(t.Input) == "null" {
		return json.RawMessage(nothing)
	}
	return t.Input
}

// read parses the parts of a tool.
func (p *plan) read(at string) error {
	if err := schema.Check(p.input); err != nil {
		return errorf(at+".input", "%v", err)
	}
	if !slices.Contains([]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}, p.tool.Method) {
		return errorf(at+".method", "is %q; write GET, HEAD, POST, PUT, PATCH or DELETE", p.tool.Method)
	}
	if err := p.readPath(at + ".path"); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(p.tool.Query)) {
		place := at + ".query." + name
		if template.Has(name) {
			return errorf(place, "has ${{ in its name; only values are bound")
		}
		t, err := p.text(place, p.tool.Query[name], inputtext.Omits)
		if err != nil {
			return err
		}
		p.query = append(p.query, parameter{name, t})
	}
	return p.readBody(at + ".body")
}

// text parses a text with expressions.
func (p *plan) text(at, text string, a inputtext.Absence) (*inputtext.Text, error) {
	t, err := p.values.Parse(text, a)
	if err != nil {
		return nil, invalid(at, a, err)
	}
	p.texts = append(p.texts, placed{at, a, t})
	return t, nil
}

// invalid returns the error of a text with expressions.
func invalid(at string, a inputtext.Absence, err error) error {
	hint := ""
	if wrong, ok := errors.AsType[*expr.Error](err); ok && wrong.Absent {
		hint = ", or list it in required of input"
		if a == inputtext.Omits {
			hint += ", or let the text be ${{ }} alone, which is then left out"
		}
	}
	return errorf(at, "%v%s", err, hint)
}
