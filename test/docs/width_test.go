package docs_test

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// maxColumns is the width of a line of prose: longer ones are hard to review.
const maxColumns = 120

// Lines of prose fit a screen. Tables, code and generated pages may be wider.
func TestProseFitsAScreen(t *testing.T) {
	for _, page := range found(t, ".md", "docs", "examples") {
		relative, err := filepath.Rel(root, page)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(relative, "docs/reference/") || relative == "docs/reliability.md" || relative == "docs/performance.md" {
			continue
		}
		code := false
		for i, line := range strings.Split(read(t, page), "\n") {
			if strings.HasPrefix(strings.TrimSpace(line), "```") {
				code = !code
			}
			if code || strings.HasPrefix(line, "|") || utf8.RuneCountInString(line) <= maxColumns {
				continue
			}
			t.Errorf("%s:%d has more than %d columns", relative, i+1, maxColumns)
		}
	}
}
