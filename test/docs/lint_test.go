package docs_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	yamlnode "go.yaml.in/yaml/v3"

	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// yamlBlock is a block of YAML on a page.
var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// yamlBlocks returns the blocks of all pages, with where they are.
func yamlBlocks(t *testing.T) []lint.File {
	t.Helper()
	var out []lint.File
	for _, page := range found(t, ".md", "docs", "examples") {
		name, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(name, "docs/designs/") { // they show what the API was, and parts of it
			continue
		}
		text := read(t, page)
		for _, m := range yamlBlock.FindAllStringSubmatchIndex(text, -1) {
			before := strings.Count(text[:m[2]], "\n")
			out = append(out, lint.File{Name: name, Data: []byte(strings.Repeat("\n", before) + text[m[2]:m[3]])})
		}
	}
	return out
}

// The manifests on each page have no errors. A page may leave out the objects that others show.
func TestManifestsOnPagesHaveNoErrors(t *testing.T) {
	manifests := 0
	for _, block := range yamlBlocks(t) {
		report, err := lint.Files(t.Context(), []lint.File{block}, gen.Noon)
		if err != nil {
			t.Fatal(err)
		}
		manifests += report.Objects
		for _, f := range report.Findings {
			if f.Severity == lint.Error {
				t.Errorf("%s:%d: %s/%s: %s: %s", f.File, f.Line, f.Kind, f.Name, f.Path, f.Message)
			}
		}
	}
	if manifests == 0 {
		t.Error("no page has a manifest")
	}
}

// In the pieces of manifests, too, no comma cuts a text: {prompt: Fix it, then test} has a field
// "then test".
func TestNoCommaCutsATextOnAPage(t *testing.T) {
	for _, block := range yamlBlocks(t) {
		var document yamlnode.Node
		if err := yamlnode.Unmarshal(block.Data, &document); err != nil {
			t.Errorf("%s: %v", block.Name, err)
			continue
		}
		for _, field := range fieldsWithSpaces(&document) {
			t.Errorf("%s: %s: put the text before it into quotes, or write a block", block.Name, field)
		}
	}
}

// fieldsWithSpaces returns the names in mappings of flow style that have a space and no value.
func fieldsWithSpaces(n *yamlnode.Node) []string {
	var out []string
	for i, child := range n.Content {
		out = append(out, fieldsWithSpaces(child)...)
		isName := n.Kind == yamlnode.MappingNode && i%2 == 0
		if isName && strings.Contains(child.Value, " ") && n.Content[i+1].Value == "" {
			out = append(out, fmt.Sprintf("line %d: %q", child.Line, child.Value))
		}
	}
	return out
}
