// Package docs_test keeps the documentation true where a machine can.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../.."

var (
	testName  = regexp.MustCompile("`(Test[A-Za-z]+)`")
	storyName = regexp.MustCompile("`stories/([a-z-]+)(\\*)?`")
	testFunc  = regexp.MustCompile(`(?m)^func (Test[A-Za-z]+)\(`)
	link      = regexp.MustCompile(`\]\(([^)#:]*)(?:#([^)]*))?\)`)
	title     = regexp.MustCompile(`(?m)^#+ (.*)$`)
	// punctuation is what GitHub leaves out of the anchor of a title.
	punctuation = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// What the pages call a proof exists. The tables of reliability.md are checked
// by hack/reliability, its prose here.
func TestProofsExist(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "reliability.md")) + read(t, filepath.Join(root, "docs", "security.md"))
	tests := allTests(t)
	for _, m := range testName.FindAllStringSubmatch(page, -1) {
		if !tests[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	for _, m := range storyName.FindAllStringSubmatch(page, -1) {
		files, err := filepath.Glob(filepath.Join(root, "internal/controller/*/testdata/stories", m[1]+m[2]+".txt"))
		if err != nil || len(files) == 0 {
			t.Errorf("there is no story %s%s", m[1], m[2])
		}
	}
}

func allTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() && d.Name() == "dist" { // has the previous release
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		for _, m := range testFunc.FindAllStringSubmatch(read(t, path), -1) {
			found[m[1]] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// Links between pages lead somewhere.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "examples/*.md", "examples/*/*.md"} {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(pages) == 0 {
			t.Fatalf("looking for pages: %v", err)
		}
		for _, page := range pages {
			for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
				leads(t, page, m[1], m[2])
			}
		}
	}
}

// leads follows a link of a page to a file, and to a heading in it.
func leads(t *testing.T, page, path, heading string) {
	t.Helper()
	target := page
	if path != "" {
		target = filepath.Join(filepath.Dir(page), path)
	}
	info, err := os.Stat(target)
	if err != nil {
		t.Errorf("%s links to %s, which is not there", page, path)
		return
	}
	if heading == "" || info.IsDir() {
		return
	}
	for _, m := range title.FindAllStringSubmatch(read(t, target), -1) {
		if strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == heading {
			return
		}
	}
	t.Errorf("%s links to %s in %s, where no heading is called so", page, heading, target)
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
