package controller_test

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// drawn is a line of a drawing: a file, and the functions in it that are called in turn.
var drawn = regexp.MustCompile(`(?m)^[ └├│─]*([a-z]+/[a-z]+\.go) +([A-Za-z →]+)(?:: |$)`)

// The drawings of the design name files and functions that exist.
func TestDrawingsOfTheDesign(t *testing.T) {
	page, err := os.ReadFile("../../docs/designs/011-the-operator-in-packages.md")
	if err != nil {
		t.Fatal(err)
	}
	lines := drawn.FindAllStringSubmatch(string(page), -1)
	if len(lines) < 10 {
		t.Errorf("the drawings have %d lines", len(lines))
	}
	for _, line := range lines {
		found, err := filepath.Glob("../*/" + line[1])
		if err != nil || len(found) != 1 {
			t.Errorf("%s is drawn, and is there %d times", line[1], len(found))
			continue
		}
		file, err := os.ReadFile(found[0])
		if err != nil {
			t.Fatal(err)
		}
		for name := range strings.SplitSeq(line[2], " → ") {
			if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + name + `\(`).Match(file) {
				t.Errorf("%s has no function %s", line[1], name)
			}
		}
	}
}

// A controller is not a library: what two of them need is a package of its own.
func TestNoControllerImportsAnother(t *testing.T) {
	const controllers = `"github.com/deckhand-dev/deckhand/internal/controller/`
	files, err := filepath.Glob("*/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if strings.HasPrefix(i.Path.Value, controllers) {
				t.Errorf("%s imports %s", name, i.Path.Value)
			}
		}
	}
}
