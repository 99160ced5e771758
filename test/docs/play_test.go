package docs_test

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var scriptBlock = regexp.MustCompile("(?ms)^```json\n(\\{\"models\".*?)^```$")

// The script on the page is one that the stand-in for a provider reads, and its calls are of tools that the
// Agent beside it has.
func TestTheScriptOnThePageCanBePlayed(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "models.md"))
	block := scriptBlock.FindStringSubmatch(page)
	if block == nil {
		t.Fatal("docs/models.md has no script")
	}
	script, err := modeltest.Parse([]byte(block[1]))
	if err != nil {
		t.Fatal(err)
	}
	for name, dialogue := range script.Models {
		if !strings.Contains(page, "modelID: "+name+"\n") {
			t.Errorf("no Model of the page has the modelID %s", name)
		}
		for _, turn := range dialogue.Turns {
			for _, call := range turn.Calls {
				if !strings.Contains(strings.Join(task.Builtins[task.BuiltinFiles].Tools, " "), call.Name) {
					t.Errorf("the Agent of the page has no tool %s", call.Name)
				}
			}
		}
	}
}

// Each fault that the page names is one.
func TestThePageNamesTheFaultsOfScripts(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "models.md"))
	for _, kind := range []modeltest.FaultKind{
		modeltest.FaultStatus, modeltest.FaultHTML, modeltest.FaultErrorBody, modeltest.FaultGarbage, modeltest.FaultReset,
		modeltest.FaultCut, modeltest.FaultIdle, modeltest.FaultStreamError,
	} {
		if !strings.Contains(page, "`"+string(kind)+"`") && !strings.Contains(page, `"kind": "`+string(kind)+`"`) {
			t.Errorf("docs/models.md does not name the fault %s", kind)
		}
	}
}
