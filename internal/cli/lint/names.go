package lint

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	yamlnode "go.yaml.in/yaml/v3"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/docs/reference"
)

// A renamed is a field of another tool, or of a version before v0.1.0, with its replacement.
type renamed struct {
	path    string         // without spec, for example tools[].hosts
	value   any            // as the page shows it; nil: it shows none
	beside  map[string]any // the fields beside it, with itself
	instead string
	to      successor
}

// A successor is the replacement of a field, and its value as a page shows it.
type successor struct {
	name  string // absolute, as spec.inference, or of a field beside the other
	value any    // nil: the page shows none
}

// renamedFields returns the rows of the pages by kind.
var renamedFields = sync.OnceValue(func() map[string][]renamed {
	out := map[string][]renamed{}
	readTables(out, reference.FieldNames, "write ")
	readTables(out, reference.APIChanges, "it is now ")
	return out
})

var codeSpan = regexp.MustCompile("`([^`]+)`")

// readTables reads the tables of a page, whose sections are kinds.
func readTables(out map[string][]renamed, page, verb string) {
	for _, section := range strings.Split(page, "\n## ")[1:] {
		kind, rows, _ := strings.Cut(section, "\n")
		if !slices.Contains(kinds, kind) {
			continue
		}
		for row := range strings.Lines(rows) {
			out[kind] = append(out[kind], readRow(row, verb)...)
		}
	}
}

func readRow(row, verb string) []renamed {
	cells := strings.Split(row, "|")
	if len(cells) != 4 {
		return nil
	}
	instead := verb + strings.ReplaceAll(strings.TrimSpace(cells[2]), "`", "")
	if instead == verb+"removed" {
		instead = "it was removed"
	}
	to := successorIn(cells[2])
	var out []renamed
	for _, span := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
		for _, r := range readSnippet(span[1], instead) {
			r.to = to
			out = append(out, r)
		}
	}
	return out
}

// successorIn returns the field in a cell of a page; none if it names none or several.
func successorIn(cell string) successor {
	spans := codeSpan.FindAllStringSubmatch(cell, -1)
	var content any
	if len(spans) != 1 || yaml.Unmarshal([]byte(spans[0][1]), &content) != nil {
		return successor{}
	}
	switch content := content.(type) {
	case string:
		return successor{name: content}
	case map[string]any:
		for name, value := range content {
			if len(content) == 1 {
				return successor{name, value}
			}
		}
	}
	return successor{}
}

// readSnippet returns the fields of a piece of a manifest.
func readSnippet(snippet, instead string) []renamed {
	var value any
	if yaml.Unmarshal([]byte(snippet), &value) != nil {
		return nil // it is no YAML, for example a pattern
	}
	if name, is := value.(string); is {
		value = map[string]any{name: nil}
	}
	var out []renamed
	var walk func(path string, v any, siblings map[string]any)
	walk = func(path string, v any, siblings map[string]any) {
		if path != "" {
			out = append(out, renamed{path: strings.TrimPrefix(path, "spec."), value: v, beside: siblings, instead: instead})
		}
		switch v := v.(type) {
		case map[string]any:
			for _, name := range sortedKeys(v) {
				walk(join(path, name), v[name], v)
			}
		case []any:
			for _, item := range v {
				walk(path+"[]", item, nil)
			}
		}
	}
	walk("", value, nil)
	return out
}

var index = regexp.MustCompile(`\[\d+\]`)

// insteadOf returns the replacement of a field; empty: the pages have none. Of several matching rows, the one with the
// longest path counts, then the one with the most matching neighboring values. For an existing field, the value must
// match, too.
func (o *object) insteadOf(path string, matches func(renamed) bool) string {
	return o.rowFor(path, matches).instead
}

// rowFor returns the row that insteadOf chooses.
func (o *object) rowFor(path string, matches func(renamed) bool) renamed {
	general := index.ReplaceAllString(path, "[]")
	rows := renamedFields()[o.kind()]
	if strings.HasPrefix(path, "spec.runTemplate.spec.") {
		rows = renamedFields()["Run"]
	}
	best, row := 0, renamed{}
	for _, r := range rows {
		if general != r.path && !strings.HasSuffix(general, "."+r.path) || !matches(r) {
			continue
		}
		const longer = 10 // counts more than values
		if score := longer*(1+strings.Count(r.path, ".")) + o.sameBeside(path, r); score > best {
			best, row = score, r
		}
	}
	return row
}

// setToo returns what to do with a field whose replacement has a value already, or an empty text.
func (o *object) setToo(path string, to successor) string {
	_, was := splitPath(path)
	at, value := pathOf(to.name, path), to.value
	for {
		now, isSet := o.nodes[at]
		if !isSet || at == path || o.fieldSchema(at) == nil { // another unknown field is no replacement
			return ""
		}
		fields, _ := value.(map[string]any)
		inner, hasName := fields[was]
		switch {
		case hasName:
			at, value = join(at, was), inner
		case !strings.HasSuffix(at, "Ref") && areCollections(o.nodes[path].value, now.value):
			return fmt.Sprintf("%s is set too: move to it what it lacks, and remove %s", strings.TrimPrefix(at, "spec."), was)
		case strings.HasSuffix(at, "Ref") || len(fields) == 0:
			return fmt.Sprintf("%s is set too: remove %s", strings.TrimPrefix(at, "spec."), was)
		case len(fields) == 1:
			only := sortedKeys(fields)[0]
			at, value = join(at, only), fields[only]
		default:
			return ""
		}
	}
}

// pathOf returns the path of the replacement of a field. It is empty if the page does not show which item of a list has
// it.
func pathOf(name, other string) string {
	parent, _ := splitPath(other)
	rest, isAbsolute := strings.CutPrefix(name, "spec.")
	if !isAbsolute {
		return join(parent, name)
	}
	if strings.HasPrefix(other, "spec.runTemplate.spec.") {
		name = "spec.runTemplate.spec." + rest
	}
	of, last := splitPath(name)
	switch {
	case of == index.ReplaceAllString(parent, "[]"):
		return join(parent, last)
	case strings.Contains(name, "[]"):
		return ""
	}
	return name
}

// areCollections reports whether both values are mappings, or both lists.
func areCollections(a, b *yamlnode.Node) bool {
	return a != nil && b != nil && a.Kind == b.Kind && (a.Kind == yamlnode.MappingNode || a.Kind == yamlnode.SequenceNode)
}

// sameBeside counts neighboring values that equal those of a row.
func (o *object) sameBeside(path string, r renamed) int {
	parent, _ := splitPath(path)
	n := 0
	for name, value := range r.beside {
		if at, found := o.nodes[join(parent, name)]; found && value != nil && at.value.Value == value {
			n++
		}
	}
	return n
}
