package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSplit(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"podURLBuilder": "pod url builder",
		"takeDown":      "take down",
		"HTTPServer":    "http server",
		"max_told":      "max told",
		"x":             "x",
		"ReasonV2":      "reason v",
	} {
		if got := strings.Join(split(name), " "); got != want {
			t.Errorf("split(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestListedTermsMatchWholeWords(t *testing.T) {
	t.Parallel()
	terms, err := parseTerms("mind evaluator\ntakeDown snapshot\n# a comment\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"newMind":       "evaluator",
		"reminder":      "",
		"mindful":       "",
		"mustTakeDown":  "snapshot",
		"takeItDown":    "",
		"TakeDownFiles": "snapshot",
	} {
		if got, _ := match(terms, name); got.instead != want {
			t.Errorf("match(%q) says %q, want %q", name, got.instead, want)
		}
	}
}

func TestATermNeedsAReplacement(t *testing.T) {
	t.Parallel()
	if _, err := parseTerms("mind\n"); err == nil {
		t.Error("a term without a replacement is accepted")
	}
}

func TestNamesAreCheckedWhereTheyAreNotPending(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, "old/a.go", "package old\n\ntype mind struct{ Verdict int }\n")
	write(t, root, "new/a.go", "package new\n\nfunc newMind() {}\n\ntype store interface{ Heed() }\n")
	write(t, root, "new/a_test.go", "package new\n\nfunc testMind() {}\n")
	write(t, root, "hack/words/pending.txt", "old\ngone\n")
	var out strings.Builder
	if err := checkNames(&out, root, []string{"old", "new"}); err == nil {
		t.Error("listed names are accepted")
	}
	want := `old/a.go:3: Verdict: write outcome
new/a.go:3: newMind: write evaluator
new/a.go:5: Heed: write apply
hack/words/pending.txt: gone has no listed names left: remove the line
`
	if out.String() != want {
		t.Errorf("reported:\n%s\nwant:\n%s", out.String(), want)
	}
}

func TestProseOfGoStandsOnItsLines(t *testing.T) {
	t.Parallel()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "x.go", `package x

// Agent runs tools.
// It has a model.
//
// +kubebuilder:validation:XValidation:rule="self.x > 0",message="x must be positive"
// +kubebuilder:validation:XValidation:rule="self.y in ['a', 'b']",messageExpression="'y must be set: ' + self.y"
type Agent struct {
	// model is the name.
	Model string `+"`json:\"model,omitempty and more\"`"+`
	// hidden is checked too:
	//   - the first item
	//   - the second item
	hidden string // a note behind code is not
}

// helper is not exported.
//
//	its example is not prose
func helper() error {
	// A comment in a function.
	return errors.New("The Run has failed: create another") //nolint:all // not prose
}
`, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	got := goProse(fset, file)
	want := prose{
		3:  {"Agent runs tools. It has a model."},
		6:  {"X must be positive."},
		7:  {"Y must be set:."},
		9:  {"Model is the name."},
		11: {"Hidden is checked too:."},
		12: {"The first item."},
		13: {"The second item."},
		17: {"Helper is not exported."},
		21: {"A comment in a function."},
		22: {"The Run has failed: create another."},
	}
	if len(got) != len(want) {
		t.Errorf("prose is %v, want %v", got, want)
	}
	for line, text := range want {
		if strings.Join(got[line], "|") != text[0] {
			t.Errorf("line %d is %q, want %q", line, got[line], text)
		}
	}
}

func TestProseOfManifests(t *testing.T) {
	t.Parallel()
	got := manifestProse("# Two lines\n# of one comment.\nspec:\n  x: 1 # beside a value\n  message: \"must be one\"\n  name: a\n")
	for line, text := range map[int]string{1: "Two lines of one comment.", 4: "Beside a value.", 5: "Must be one."} {
		if strings.Join(got[line], "|") != text {
			t.Errorf("line %d is %q, want %q", line, got[line], text)
		}
	}
	if len(got) != 3 {
		t.Errorf("prose is %v, want three lines", got)
	}
}

func TestProseOfMessageExpressions(t *testing.T) {
	t.Parallel()
	got := manifestProse("  - expression: \"'not a message' != x\"\n    messageExpression: \"'remove ' + x.join(', ') + ' and set spec.by'\"\n")
	if len(got) != 1 || strings.Join(got[2], "|") != "And set spec.by." {
		t.Errorf("prose is %v", got)
	}
}

func TestProseOfHelp(t *testing.T) {
	t.Parallel()
	got := helpProse("SHELL = bash # ## no help\n\nbuild: bin/x ## Build the programs\n\tgo build ./... ## no help\n")
	if len(got) != 1 || strings.Join(got[3], "|") != "Build the programs." {
		t.Errorf("prose is %v", got)
	}
}

func write(t *testing.T, root, path, text string) {
	t.Helper()
	path = filepath.Join(root, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
