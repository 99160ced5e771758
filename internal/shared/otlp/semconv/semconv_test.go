package semconv

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A name that changes with the conventions changes in this package alone.
func TestNamesAreInThisPackage(t *testing.T) {
	root := filepath.Join("..", "..", "..", "..")
	seen := 0
	for _, dir := range []string{"cmd", "internal", "runner"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "semconv.go" {
				return err
			}
			seen++
			text, err := os.ReadFile(path)
			if bytes.Contains(text, []byte(`"gen_ai.`)) {
				t.Errorf("%s has a name of the conventions: use one of this package", path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 100 {
		t.Errorf("only %d files were read", seen)
	}
}
