package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	syaml "sigs.k8s.io/yaml"
)

// codeSpan is a code span of Markdown.
var codeSpan = regexp.MustCompile("`([^`]+)`")

// The page of field names must not send a user from one wrong name to another.
func TestFieldNamesThatAreRecommendedExist(t *testing.T) {
	page := read(t, filepath.Join(root, "docs/reference/field-names.md"))
	sections := strings.Split(page, "\n## ")[1:]
	for _, section := range sections {
		kind, rows, _ := strings.Cut(section, "\n")
		fields := fieldsOf(t, kind)
		for row := range strings.Lines(rows) {
			cells := strings.Split(row, "|")
			if len(cells) != 4 || strings.Contains(cells[1], "you write") {
				continue
			}
			of := fields
			if strings.HasSuffix(strings.TrimSpace(cells[2]), " in the Agent") {
				of = fieldsOf(t, "Agent")
			}
			recommendsFields(t, cells[2], of)
		}
	}
	if len(sections) == 0 {
		t.Error("the page has no section")
	}
}

// recommendsFields fails the test unless the fields that a cell recommends exist.
func recommendsFields(t *testing.T, cell string, fields map[string]bool) {
	t.Helper()
	for _, span := range codeSpan.FindAllStringSubmatch(cell, -1) {
		for _, name := range fieldsIn(t, span[1]) {
			if !fields[name] {
				t.Errorf("there is no field %s, which the page recommends: %s", name, strings.TrimSpace(cell))
			}
		}
	}
}

// fieldsOf returns the names of all fields of a kind, at any depth.
func fieldsOf(t *testing.T, kind string) map[string]bool {
	t.Helper()
	fields := map[string]bool{}
	var walk func(apiextensionsv1.JSONSchemaProps)
	walk = func(s apiextensionsv1.JSONSchemaProps) {
		for name, field := range s.Properties {
			fields[name] = true
			walk(field)
		}
		if s.Items != nil && s.Items.Schema != nil {
			walk(*s.Items.Schema)
		}
	}
	walk(schemaOf(t, kind))
	return fields
}

// fieldsIn returns the names of fields in a piece of a manifest, without what
// stands below input or a schema, where users choose the names. A path such as limits.steps
// names its parts; an expression names nothing.
func fieldsIn(t *testing.T, manifest string) []string {
	t.Helper()
	var value any
	if err := syaml.Unmarshal([]byte(manifest), &value); err != nil {
		t.Fatalf("%s: %v", manifest, err)
	}
	if path, is := value.(string); is && !strings.ContainsAny(path, "${ ") {
		path = strings.TrimPrefix(path, "nodes.a")
		path = strings.TrimPrefix(path, "status.")
		return strings.FieldsFunc(path, func(r rune) bool { return r == '.' })
	}
	var names []string
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				walk(one)
			}
		case map[string]any:
			for name, one := range v {
				names = append(names, name)
				if name != "input" && name != "schema" {
					walk(one)
				}
			}
		}
	}
	walk(value)
	return names
}
