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
	link      = regexp.MustCompile(`\]\(([^)#:]+)\)`)
)

// What reliability.md calls a proof exists.
func TestProofsExist(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "reliability.md"))
	tests := allTests(t)
	for _, m := range testName.FindAllStringSubmatch(page, -1) {
		if !tests[m[1]] {
			t.Errorf("there is no %s", m[1])
		}
	}
	for _, m := range storyName.FindAllStringSubmatch(page, -1) {
		files, err := filepath.Glob(filepath.Join(root, "internal/controller/run/testdata/stories", m[1]+m[2]+".txt"))
		if err != nil || len(files) == 0 {
			t.Errorf("there is no story %s%s", m[1], m[2])
		}
	}
}

func allTests(t *testing.T) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
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
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Glob(filepath.Join(root, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(append(pages, more...), top...) {
		for _, m := range link.FindAllStringSubmatch(read(t, page), -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(page), m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			}
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
