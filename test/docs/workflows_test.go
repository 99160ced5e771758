package docs_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/apitest"
)

var (
	makeCommand = regexp.MustCompile(`(?m)^.*\bmake ((?:--[a-z-]+ )*)([a-z][-a-z0-9 ]*)`)
	makeTarget  = regexp.MustCompile(`^[a-z][-a-z0-9]*$`)
)

// makeTargets are the targets of the commands of make in a text.
func makeTargets(text string) []string {
	var out []string
	for _, found := range makeCommand.FindAllStringSubmatch(text, -1) {
		if strings.HasPrefix(found[0], "need ") {
			continue // which installs make
		}
		out = append(out, slices.DeleteFunc(strings.Fields(found[2]), func(word string) bool { return !makeTarget.MatchString(word) })...)
	}
	return out
}

// A pull request is checked by all that CI checks, and each of its checks can fail there.
func TestWorkflowsRunWhatCIRuns(t *testing.T) {
	script, err := os.ReadFile(filepath.Join(apitest.Root(), ".ci", "run"))
	if err != nil {
		t.Fatal(err)
	}
	want := makeTargets(string(script))
	if len(want) < 7 {
		t.Fatalf("the targets of CI are %q", want)
	}
	files, err := filepath.Glob(filepath.Join(apitest.Root(), ".github", "workflows", "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var ran []string
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\n  pull_request:\n") {
			ran = append(ran, makeTargets(string(text))...)
		}
		if strings.Contains(string(text), "continue-on-error") {
			t.Errorf("%s goes on after an error", filepath.Base(file))
		}
	}
	for _, target := range want {
		if !slices.Contains(ran, target) {
			t.Errorf("no workflow of pull requests runs make %s", target)
		}
	}
}
