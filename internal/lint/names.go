package lint

import (
	"regexp"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/docs/reference"
)

// A renamed is a field of another tool, or from before v0.1.0, and what to write instead.
type renamed struct {
	path    string         // without spec, for example tools[].hosts
	value   any            // as the page shows it; nil: it shows none
	beside  map[string]any // the fields beside it, with itself
	instead string
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
	var out []renamed
	for _, span := range codeSpan.FindAllStringSubmatch(cells[1], -1) {
		out = append(out, readSnippet(span[1], instead)...)
	}
	return out
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
			out = append(out, renamed{strings.TrimPrefix(path, "spec."), v, siblings, instead})
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

// insteadOf returns what to write instead of a field; empty: the pages do not say it. Of
// several rows that match, it is the one whose path is longest and which has most of the values
// beside the field. A field that exists counts only if its value is as a page shows it.
func (o *object) insteadOf(path string, matches func(renamed) bool) string {
	general := index.ReplaceAllString(path, "[]")
	rows := renamedFields()[o.kind()]
	if strings.HasPrefix(path, "spec.runTemplate.spec.") {
		rows = renamedFields()["Run"]
	}
	best, instead := 0, ""
	for _, r := range rows {
		if general != r.path && !strings.HasSuffix(general, "."+r.path) || !matches(r) {
			continue
		}
		const longer = 10 // counts more than values
		if score := longer*(1+strings.Count(r.path, ".")) + o.sameBeside(path, r); score > best {
			best, instead = score, r.instead
		}
	}
	return instead
}

// sameBeside counts the values beside a field that are those of a row.
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
