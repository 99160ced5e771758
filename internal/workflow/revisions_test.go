package workflow_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var update = flag.Bool("update", false, "rewrite what stored revisions mean")

// Revisions in all stored forms compile to the same Program. The golden file has the
// terms of the API: it changes only if a field of the API is renamed.
func TestStoredRevisionsCompile(t *testing.T) {
	for v := 1; v <= stored.Version; v++ {
		from := filepath.Join("..", "revision", "stored", "testdata", "revisions", fmt.Sprintf("v%d", v))
		maps, hash := map[string]*corev1.ConfigMap{}, ""
		for _, file := range []string{"nested.json", "workflow.json"} {
			data, err := os.ReadFile(filepath.Join(from, file))
			if err != nil {
				t.Fatal(err)
			}
			hash = task.Hash(data)
			maps[workflow.Name(hash)] = &corev1.ConfigMap{Data: map[string]string{"workflow.json": string(data)}}
		}
		got, err := workflow.Read(t.Context(), fromConfigMaps(maps), hash)
		if err != nil || got == nil {
			t.Fatalf("v%d: Read() = %v, %v", v, got, err)
		}
		if _, err := workflow.Compile(got); err != nil {
			t.Errorf("v%d: Compile: %s", v, problem(err))
		}
		if cm := got.ConfigMaps("team-a"); cm[len(cm)-1].Data["workflow.json"] != maps[workflow.Name(hash)].Data["workflow.json"] {
			t.Errorf("v%d: it is stored again as something else", v)
		}
		compare(t, fmt.Sprintf("v%d.yaml", v), got)
	}
}

func compare(t *testing.T, name string, v *workflow.Revision) {
	t.Helper()
	got, err := yaml.Marshal(map[string]any{"main": v.Spec, "release": v.Workflows["release"].Spec})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join("testdata", "revisions", name)
	if *update {
		if err := os.WriteFile(file, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("a stored revision means something else than it did: Runs in flight change when their operator is upgraded. Take the change back, or convert the old form as the documentation of package stored says. If only a field of the API was renamed, run the test with -update (-was +is):\n%s", diff)
	}
}
