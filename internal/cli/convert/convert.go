// Package convert rewrites manifests with former names of fields, values or tools to current names. It works on the
// text, so comments, order and unaffected lines are unchanged. A document that it cannot convert without a loss is
// unchanged, and internal/cli/lint describes what to write.
package convert

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"slices"
	"strings"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
)

// A Change is a field that was rewritten.
type Change struct {
	File       string
	Line       int // in the file as it was
	Kind, Name string
	Path, Now  string // of the field, before and after, for example spec.events and spec.log
}

// Files rewrites the manifests of files and returns them in their order, with the changes. A file
// that needs no change is returned to the byte.
func Files(files []lint.File) ([]lint.File, []Change) {
	names := toolsOf(files)
	var changes []Change
	out := make([]lint.File, len(files))
	for i, file := range files {
		out[i].Name = file.Name
		for _, d := range split(file) {
			data, of := d.convert(names)
			out[i].Data = slices.Concat(out[i].Data, d.separator, data, d.end)
			changes = append(changes, of...)
		}
	}
	return out, changes
}

// An Unconverted is a document with objects of the API that is not converted, because it has aliases.
type Unconverted struct {
	File        string
	First, Last int    // its lines
	Line        int    // of the first alias
	Alias       string // as it is written
}

// WithAliases returns the documents that Files does not convert, because they have aliases.
func WithAliases(files []lint.File) []Unconverted {
	var out []Unconverted
	for _, file := range files {
		for _, d := range split(file) {
			root := d.parse()
			if root == nil || len(objectsOf(root)) == 0 {
				continue
			}
			if alias := aliasIn(root); alias != nil {
				last := d.first + bytes.Count(d.data, []byte("\n"))
				out = append(out, Unconverted{file.Name, d.first, last, d.first + alias.Line - 1, "*" + alias.Value})
			}
		}
	}
	return out
}

// A document is one YAML document of a file.
type document struct {
	file      string
	first     int    // the line of the file at which data begins
	separator []byte // the line before data
	data      []byte
	end       []byte // the end of the document (...) with the comments behind it
}

// split splits a file as kubectl does: at lines that begin with ---.
func split(file lint.File) []*document {
	current := &document{file: file.Name, first: 1}
	documents := []*document{current}
	line := 0
	for text := range bytes.Lines(file.Data) {
		line++
		rest, is := bytes.CutPrefix(text, []byte("---"))
		if rest = bytes.TrimSpace(rest); is && (len(rest) == 0 || rest[0] == '#') {
			current = &document{file: file.Name, first: line + 1, separator: text}
			documents = append(documents, current)
			continue
		}
		current.data = append(current.data, text...)
	}
	for _, d := range documents {
		d.cutEnd()
	}
	return documents
}

// cutEnd takes the end of the document out of data. A document with more than comments behind it is not
// converted.
func (d *document) cutEnd() {
	if lint.SecondDocument(d.data) > 0 {
		return
	}
	if at := ending.FindIndex(d.data); at != nil {
		d.data, d.end = d.data[:at[0]], d.data[at[0]:]
	}
}

var ending = regexp.MustCompile(`(?m)^\.\.\.\s*(#.*)?\r?$`)

// convert returns the document with the current names.
func (d *document) convert(taken tools) ([]byte, []Change) {
	root := d.parse()
	// A change of an anchor would also change all its aliases. If a name occurs twice, this package and the reader use
	// different values: valueOf refuses it, and lint names it.
	if root == nil || aliasIn(root) != nil || valueOf(root) == nil {
		return d.data, nil
	}
	data, changes := d.convertBlocks(taken)
	if len(changes) > 0 {
		d = &document{file: d.file, first: d.first, data: data}
		root = d.parse()
	}
	lines := linesOf(d.data, root)
	of := d.changeTo(root, taken, nil)
	if len(of) == 0 {
		return d.data, changes
	}
	want := valueOf(root)
	for _, write := range []func() ([]byte, error){
		func() ([]byte, error) { return asJSON(d.data, root) },
		lines.write,
		func() ([]byte, error) { return lines.whole(root) },
	} {
		data, err := write()
		if err == nil && reflect.DeepEqual(want, valueOf((&document{data: data}).parse())) {
			changes = append(changes, of...)
			slices.SortStableFunc(changes, func(a, b Change) int { return a.Line - b.Line })
			return data, changes
		}
	}
	return d.data, changes // what could not be written is named by lint
}

// convertBlocks returns the document with the names of today in texts that are written in lines of their own.
func (d *document) convertBlocks(taken tools) ([]byte, []Change) {
	root, lines := d.parse(), linesIn(string(d.data))
	changes := d.changeTo(root, taken, lines)
	data := []byte(strings.Join(lines, ""))
	if !reflect.DeepEqual(valueOf(root), valueOf((&document{data: data}).parse())) {
		return nil, nil
	}
	return data, changes
}

// changeTo changes the objects of a document to the names of today; with blocks only its texts in lines of
// their own, and these lines.
func (d *document) changeTo(root *yamlnode.Node, taken tools, blocks []string) []Change {
	var changes []Change
	for _, object := range objectsOf(root) {
		c := converter{document: d, object: object, taken: taken, blocks: blocks}
		if blocks == nil {
			c.convert()
		} else {
			c.renameInTexts()
		}
		changes = append(changes, c.changes...)
	}
	return changes
}

// parse returns the mapping of the document; nil: it has none, is not YAML, or is not one document. Lint reports a
// second document, which a rewritten document would lose.
func (d *document) parse() *yamlnode.Node {
	var root yamlnode.Node
	if lint.SecondDocument(d.data) > 0 || yamlnode.Unmarshal(d.data, &root) != nil || root.Kind == 0 || root.Content[0].Kind != yamlnode.MappingNode {
		return nil
	}
	return root.Content[0]
}

// valueOf returns the value that a reader of the document sees.
func valueOf(root *yamlnode.Node) any {
	if root == nil {
		return nil
	}
	var value any
	if root.Decode(&value) != nil {
		return nil
	}
	return value
}

// objectsOf returns the objects of the API in a document, with those of a list.
func objectsOf(root *yamlnode.Node) []*yamlnode.Node {
	group, _, _ := strings.Cut(text(root, "apiVersion"), "/")
	if group == v1alpha1.GroupVersion.Group {
		return []*yamlnode.Node{root}
	}
	items := child(root, "items")
	if items == nil || items.Kind != yamlnode.SequenceNode || !strings.HasSuffix(text(root, "kind"), "List") {
		return nil
	}
	var out []*yamlnode.Node
	for _, item := range items.Content {
		if item.Kind == yamlnode.MappingNode {
			out = append(out, objectsOf(item)...)
		}
	}
	return out
}

// errNotJSON means that a document was not JSON.
var errNotJSON = errors.New("not JSON")

// asJSON writes a document that was JSON as JSON: indented or on one line, as before.
func asJSON(before []byte, root *yamlnode.Node) ([]byte, error) {
	if !json.Valid(before) {
		return nil, errNotJSON
	}
	data, err := appendJSON(nil, root)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if indented.Match(before) {
		err = json.Indent(&b, data, "", "  ")
	} else {
		b.Write(data)
	}
	b.WriteByte('\n')
	return b.Bytes(), err
}

// indented matches JSON in lines that are indented.
var indented = regexp.MustCompile(`(?m)^[ \t]+\S`)

func appendJSON(b []byte, n *yamlnode.Node) ([]byte, error) {
	switch {
	case n.Kind == yamlnode.MappingNode, n.Kind == yamlnode.SequenceNode:
		return appendChildren(b, n)
	case n.Tag != "!!str":
		return append(b, n.Value...), nil // it was JSON
	default:
		var text bytes.Buffer
		encoder := json.NewEncoder(&text)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(n.Value)
		return append(b, bytes.TrimSpace(text.Bytes())...), err
	}
}

// appendChildren appends a list or an object. The names and values of an object follow each other.
func appendChildren(b []byte, n *yamlnode.Node) ([]byte, error) {
	open, end := byte('['), byte(']')
	isObject := n.Kind == yamlnode.MappingNode
	if isObject {
		open, end = '{', '}'
	}
	b = append(b, open)
	for i, item := range n.Content {
		switch {
		case isObject && i%2 == 1:
			b = append(b, ':')
		case i > 0:
			b = append(b, ',')
		}
		var err error
		if b, err = appendJSON(b, item); err != nil {
			return nil, err
		}
	}
	return append(b, end), nil
}
