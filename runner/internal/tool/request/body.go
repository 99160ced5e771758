package request

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

const (
	maxDepth = 32
	// maxSent is how many bytes of a body are sent.
	maxSent = 1 << 20
)

// A node is a part of a body: a value as it is, a text with values, an array or
// an object.
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

// readBody takes the body apart.
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

// node takes one value apart.
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

// object takes an object apart, in the order in which it is written.
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

// errAbsent means that a value is not given, and its place is left out.
var errAbsent = errors.New("it is not given")

// write writes a part of a body with its values.
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

func (n *node) writeItems(to *bytes.Buffer, in *inputtext.Values) error {
	to.WriteByte('[')
	for first, i := true, 0; i < len(n.items); i++ {
		before := to.Len()
		if !first {
			to.WriteByte(',')
		}
		switch err := n.items[i].write(to, in); {
		case err == nil:
			first = false
		case errors.Is(err, errAbsent):
			to.Truncate(before)
		default:
			return err
		}
	}
	to.WriteByte(']')
	return nil
}

func (n *node) writeMembers(to *bytes.Buffer, in *inputtext.Values) error {
	to.WriteByte('{')
	for first, i := true, 0; i < len(n.members); i++ {
		before := to.Len()
		if !first {
			to.WriteByte(',')
		}
		to.Write(n.members[i].name)
		to.WriteByte(':')
		switch err := n.members[i].node.write(to, in); {
		case err == nil:
			first = false
		case errors.Is(err, errAbsent):
			to.Truncate(before)
		default:
			return err
		}
	}
	to.WriteByte('}')
	return nil
}

// bindBody is the body with its values; nil: there is none.
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

// plainText writes a value inside of a longer text: a text as it is, else JSON.
func plainText(v json.RawMessage) (string, error) { return template.Text(v), nil }
