package workspace

import (
	"os"
	"testing"
	"time"
)

// Of a workspace with more files than a manifest holds, those that were written
// to since the newest are told from the rest.
func TestAManifestThatIsCutGoesByTime(t *testing.T) {
	dir := t.TempDir()
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, at := range map[string]time.Time{"unlisted": noon, "new": noon.Add(time.Second)} {
		if err := os.WriteFile(dir+"/"+name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir+"/"+name, at, at); err != nil {
			t.Fatal(err)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	files, _, err := Artifacts(t.Context(), root, Manifest{newest: noon, cut: true})
	if err != nil || len(files) != 1 || files[0].Path != "/workspace/new" {
		t.Errorf("there are %v, error %v", files, err)
	}
}
