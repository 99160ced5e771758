package lint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// Whatever a file has in it, lint answers, with lines that the file has.
func FuzzFiles(f *testing.F) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatalf("finding manifests: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		for manifest := range strings.SplitSeq(string(data), "\n---\n") {
			f.Add(manifest)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		report, err := Files(t.Context(), []File{{Name: "f.yaml", Data: []byte(text)}}, gen.Noon)
		if err != nil {
			t.Fatal(err)
		}
		last := strings.Count(text, "\n") + 2 // a parser may name the line after the end
		for _, finding := range report.Findings {
			if finding.Line < 1 || finding.Line > last || finding.Message == "" {
				t.Errorf("the finding %+v of a file with %d lines", finding, last-1)
			}
		}
	})
}
