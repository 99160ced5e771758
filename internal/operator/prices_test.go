package operator

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/listprices"
)

func TestAListOfPricesIsUsedWhenItChanges(t *testing.T) {
	t.Cleanup(func() { listprices.Use(nil) })
	model := v1alpha1.ModelSpec{Provider: "OpenAI", ModelID: "gpt-5"}
	const row = "rows:\n- {provider: OpenAI, modelID: gpt-5, prices: {output: 1USD, input: "
	const inForce = "The list of prices is in force"
	file := filepath.Join(t.TempDir(), "prices.yaml")
	var logged []string
	changes := 0
	log := funcr.New(func(_, args string) { logged = append(logged, args) }, funcr.Options{})
	p := &priceFile{PriceFile: PriceFile{Path: file, Source: "ConfigMap ops/prices"}, log: log, changed: func() { changes++ }}
	for _, step := range []struct {
		name, content string // empty: there is no file
		input         int64
		changes       int
		logged        string
		problem       string
	}{
		{"no file yet", "", 1.25e6, 0, "", ""},
		{"a list", row + "2USD}}", 2e6, 1, inForce, ""},
		{"the same list", row + "2USD}}", 2e6, 1, "", ""},
		{"a list that is wrong", row + "2}}", 2e6, 2, "row 1: prices.input is of type number: write a text", "ConfigMap ops/prices: the list of prices is wrong: row 1: prices.input"},
		{"the same wrong list", row + "2}}", 2e6, 2, "", "row 1: prices.input"},
		{"a list that is right again", row + "3USD}}", 3e6, 3, inForce, ""},
		{"no file any more", "", 1.25e6, 4, "the catalog holds", ""},
	} {
		var err error
		if step.content == "" {
			err = os.RemoveAll(file)
		} else {
			err = os.WriteFile(file, []byte(step.content), 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		logged = nil
		p.compare()
		got, err := listprices.Of(model)
		if err != nil || got.Prices.Input != step.input || changes != step.changes {
			t.Errorf("%s: error %v, input %d after %d changes, want %d after %d", step.name, err, got.Prices.Input, changes, step.input, step.changes)
		}
		if text := strings.Join(logged, "\n"); (text == "") != (step.logged == "") || !strings.Contains(text, step.logged) {
			t.Errorf("%s: logged %s, want %s", step.name, text, step.logged)
		}
		if problem := listprices.Problem(); (problem == "") != (step.problem == "") || !strings.Contains(problem, step.problem) {
			t.Errorf("%s: problem %q, want %q", step.name, problem, step.problem)
		}
	}
}
