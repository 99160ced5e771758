package lint

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// yamlBelow returns the manifests below directories of the repository, each as a file.
func yamlBelow(t *testing.T, directories ...string) []File {
	t.Helper()
	var out []File
	for _, directory := range directories {
		err := filepath.WalkDir(filepath.Join("..", "..", "..", directory), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			data, err := os.ReadFile(path)
			out = append(out, File{Name: strings.TrimPrefix(path, "../../../"), Data: data})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(out) == 0 {
		t.Fatal("there are no manifests")
	}
	return out
}

// What the project shows to users is good, but for what it shows as a mistake.
func TestExamplesAndSamplesAreGood(t *testing.T) {
	files := yamlBelow(t, "examples", "config/samples")
	report, err := Files(t.Context(), files, gen.Noon)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"warning Agent/storekeeper spec.model", // the template of a project does not bring a Model
		"error Run/input-misfit spec.input",
		"warning Model/release-script spec.endpoint", // examples/local is for a Run without a cluster
	}
	var got []string
	for _, f := range report.Findings {
		got = append(got, fmt.Sprintf("%s %s/%s %s", f.Severity, f.Kind, f.Name, f.Path))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s\n%v", diff, report.Findings)
	}
}
