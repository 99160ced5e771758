package convert_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/cli/convert"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
)

func mentions(data string) []convert.Mention {
	return convert.Mentions([]lint.File{{Name: "f.yaml", Data: []byte(data)}})
}

func TestMentions(t *testing.T) {
	for name, tc := range map[string]struct{ data, want string }{
		"a label of a selector":      {"a: b\nselector: {deckhand.dev/node: build}\n", "deckhand.dev/node"},
		"a label in a JSONPath":      {`args: ["-o", "jsonpath={.metadata.labels.deckhand\\.dev/index}"]`, "deckhand.dev/index"},
		"an annotation":              {"metadata:\n  annotations:\n    deckhand.dev/version: x\n", "deckhand.dev/version"},
		"a target in a script":       {"kubectl get runs.deckhand.dev -o jsonpath='{.status.target}'", "status.target"},
		"an item of a list":          {"kubectl get runs.deckhand.dev -o jsonpath='{.status.progress.recent[*].step}'", "status.progress.recent[].step"},
		"a short name of Runs":       {"  script: |\n    kubectl -n x get run fix -o jsonpath='{.status.target}'", "status.target"},
		"a target of today":          {"kubectl get runs.deckhand.dev -o jsonpath='{.status.target.name} {.status.target.kind}'", ""},
		"a status of something else": {"kubectl get mirrors -o jsonpath='{.status.target}'", ""},
		"names of today":             {"deckhand.dev/workflow-node: x\ndeckhand.dev/revision: x\napiVersion: deckhand.dev/v1alpha1\n", ""},
		"a comment":                  {"# deckhand.dev/node was\n", ""},
	} {
		got := mentions(tc.data)
		if tc.want == "" && len(got) > 0 || tc.want != "" && (len(got) != 1 || got[0].Was != tc.want) {
			t.Errorf("%s: %+v, want %q", name, got, tc.want)
		}
	}
	if got := mentions("---\na: 1\n---\nb:\n  deckhand.dev/claim: x\n"); len(got) != 1 || got[0].Line != 5 {
		t.Errorf("the line is wrong: %+v", got)
	}
}

// Each name of docs/reference/api-changes.md that no schema refuses is found.
func TestEachFormerNameOfThePageIsFound(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/api-changes.md")
	if err != nil {
		t.Fatal(err)
	}
	name := regexp.MustCompile("`(status[.][^ `]+|deckhand[.]dev/[^ `]+|[^`]*(/deckhand/[^ `]+))`")
	found := 0
	for row := range strings.Lines(string(page)) {
		if !strings.HasPrefix(row, "|") {
			continue
		}
		before := strings.Split(row, "|")[1]
		for _, match := range name.FindAllStringSubmatch(before, -1) {
			found++
			was := match[1]
			if match[2] != "" {
				was = match[2]
			}
			if got := mentions("kubectl get runs.deckhand.dev " + was + "\n"); len(got) != 1 {
				t.Errorf("%s is not found: %s", was, row)
			}
		}
	}
	if found < 15 { //nolint:mnd // about as many as the page has
		t.Errorf("the page has %d such names", found)
	}
}
