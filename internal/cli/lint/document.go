package lint

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	yamlnode "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// A document is one YAML document of a file.
type document struct {
	file  string
	first int // the line of the file at which it begins
	data  []byte

	root  *yamlnode.Node // with lines of the document
	value any            // as the API server reads it
}

// split splits a file as kubectl does: at lines that begin with ---.
func split(file File) []*document {
	current := &document{file: file.Name, first: 1}
	documents := []*document{current}
	line := 1
	for text := range bytes.Lines(file.Data) {
		if rest, is := bytes.CutPrefix(text, []byte("---")); is {
			if rest = bytes.TrimSpace(rest); len(rest) == 0 || rest[0] == '#' {
				current = &document{file: file.Name, first: line + 1}
				documents = append(documents, current)
				line++
				continue
			}
		}
		current.data = append(current.data, text...)
		line++
	}
	return documents
}

// parse parses the document, or returns a finding that it is not YAML.
func (d *document) parse() *Finding {
	var root yamlnode.Node
	switch err := yamlnode.Unmarshal(d.data, &root); {
	case errors.Is(err, io.EOF), err == nil && root.Kind == 0: // empty, or comments only
		return nil
	case err != nil:
		return d.syntaxError(err)
	}
	if line := SecondDocument(d.data); line > 0 {
		return &Finding{File: d.file, Line: d.first + line - 1, Severity: Error, Message: secondDocument, RefusedBy: APIServer}
	}
	converted, err := yaml.YAMLToJSON(d.data)
	if err == nil {
		err = json.Unmarshal(converted, &d.value)
	}
	if err != nil {
		return d.syntaxError(err)
	}
	d.root = root.Content[0]
	return nil
}

const secondDocument = "kubectl reads no document here: write --- on a line of its own before each document, and nothing else on this line"

// SecondDocument returns the line of a second YAML document within a document, as kubectl splits files, or 0: a
// separator as in --- {kind: Agent}, which kubectl refuses, or text after the end of the document (...), which kubectl
// ignores.
func SecondDocument(data []byte) int {
	line, hasEnded := 0, false
	for text := range bytes.Lines(data) {
		line++
		rest := bytes.TrimSpace(text)
		switch {
		case bytes.HasPrefix(text, []byte("---")), hasEnded && len(rest) > 0 && rest[0] != '#':
			return line
		case end.Match(text):
			hasEnded = true
		}
	}
	return 0
}

// end matches the end of a document.
var end = regexp.MustCompile(`^\.\.\.\s*(#.*)?\s*$`)

var lineOfError = regexp.MustCompile(`^yaml: (?:unmarshal errors:\s*)?line (\d+): `)

func (d *document) syntaxError(err error) *Finding {
	text, line := err.Error(), 1
	if m := lineOfError.FindStringSubmatch(text); m != nil {
		line, _ = strconv.Atoi(m[1]) // it matches digits
		text = text[len(m[0]):]
	}
	text = "cannot be read as YAML: " + strings.TrimPrefix(text, "yaml: ")
	switch {
	case !IsText(d.data):
		text = "cannot be read as YAML: it is not a text in UTF-8"
	case strings.Contains(text, "incompatible YAML document"):
		text += "; kubectl reads YAML 1.1: remove the line that begins with %YAML"
	case templateOfHelm.Match(d.data):
		text += "; it is a template of Helm: check what it renders with helm template CHART | kubectl deckhand lint -"
	case d.isIndentedWithTab(line):
		text += "; YAML is indented with spaces: write spaces in place of the tab"
	case strings.Contains(text, "mapping values are not allowed"):
		text += `; a text that contains ": " needs quotes, or a block: write prompt: |, and the text indented on the next lines`
	}
	return &Finding{File: d.file, Line: d.first + line - 1, Severity: Error, Message: text, RefusedBy: APIServer}
}

// IsText reports whether data is text that can be YAML: in UTF-8, or in UTF-16 with a byte order mark.
func IsText(data []byte) bool {
	isUTF16 := bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff"))
	return isUTF16 || utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

// templateOfHelm matches an action of a template of Helm, which is no ${{ }}.
var templateOfHelm = regexp.MustCompile(`(?m)(?:^|[^$])\{\{-?\s*(?:[.$]\w|/\*|(?:if|else|end|range|with|define|include|template|block|toYaml|tpl)\b)`)

// isIndentedWithTab reports whether the indentation of a line, or of the line before it, has a tab: the
// parser may name either.
func (d *document) isIndentedWithTab(line int) bool {
	lines := bytes.Split(d.data, []byte("\n"))
	for n := max(line-1, 1); n <= min(line, len(lines)); n++ {
		text := lines[n-1]
		if indent := text[:len(text)-len(bytes.TrimLeft(text, " \t"))]; bytes.ContainsRune(indent, '\t') {
			return true
		}
	}
	return false
}

// objects returns the objects of the document, with those in lists.
func (d *document) objects() []*object {
	content, is := d.value.(map[string]any)
	if !is {
		if d.value == nil {
			return nil
		}
		return []*object{newObject(d, d.root, map[string]any{})}
	}
	items, isList := content["items"].([]any)
	if kind, _ := content["kind"].(string); !isList || !strings.HasSuffix(kind, "List") {
		return []*object{newObject(d, d.root, content)}
	}
	var out []*object
	nodes := indexNodes(d.root)
	for i, item := range items {
		if c, is := item.(map[string]any); is {
			out = append(out, newObject(d, nodes[fmt.Sprintf("items[%d]", i)].value, c))
		}
	}
	return out
}

// A position is where a field is: its name, if it has one, and its value.
type position struct{ key, value *yamlnode.Node }

// maxDepth bounds the depth of a document, because an alias may be within its own anchor.
const maxDepth = 64

// indexNodes returns the nodes of a value by their paths.
func indexNodes(root *yamlnode.Node) map[string]position {
	out := map[string]position{"": {root, root}}
	var walk func(path string, n *yamlnode.Node, depth int)
	walk = func(path string, n *yamlnode.Node, depth int) {
		eachChild(n, func(name string, key, value *yamlnode.Node) {
			at := join(path, name)
			out[at] = position{key, value}
			if depth < maxDepth {
				walk(at, value, depth+1)
			}
		})
	}
	walk("", resolve(root), 0)
	return out
}

// eachChild calls a function for the members of a mapping, beginning with the members that << merges into it, and for
// the items of a sequence, which have names such as [0].
func eachChild(n *yamlnode.Node, visit func(name string, key, value *yamlnode.Node)) {
	switch n.Kind {
	case yamlnode.SequenceNode:
		for i, item := range n.Content {
			visit(fmt.Sprintf("[%d]", i), item, resolve(item))
		}
	case yamlnode.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Tag == "!!merge" {
				eachChild(resolve(n.Content[i+1]), visit)
			}
		}
		for i := 0; i+1 < len(n.Content); i += 2 {
			visit(n.Content[i].Value, n.Content[i], resolve(n.Content[i+1]))
		}
	default: // a scalar has no children, and callers resolve aliases
	}
}

// resolve returns the node to which an alias refers.
func resolve(n *yamlnode.Node) *yamlnode.Node {
	if n.Kind == yamlnode.AliasNode {
		return n.Alias
	}
	return n
}

// join appends a name to the path of a field.
func join(path, name string) string {
	if path == "" || strings.HasPrefix(name, "[") {
		return path + name
	}
	return path + "." + name
}
