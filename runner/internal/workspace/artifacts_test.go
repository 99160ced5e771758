package workspace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func artifacts(t *testing.T, p *place) ([]task.File, int) {
	t.Helper()
	root, err := os.OpenRoot(p.dir)
	must(t, err)
	defer root.Close()
	since, err := workspace.Begin(t.Context(), root, p.state)
	must(t, err)
	files, more, err := workspace.Artifacts(t.Context(), root, since)
	must(t, err)
	return files, more
}

// writeAt makes a file that was written at a time.
func writeAt(t *testing.T, p *place, name, content string, when time.Time) {
	t.Helper()
	write(t, p.dir, map[string]string{name: content})
	must(t, os.Chtimes(filepath.Join(p.dir, name), when, when))
}

func TestArtifactsAreWhatIsNewOrChanged(t *testing.T) {
	_, p := fetched(t)
	if files, more := artifacts(t, p); files != nil || more != 0 {
		t.Fatalf("at first there are %v and %d more", files, more)
	}
	later := noon.AddDate(10, 0, 0)
	writeAt(t, p, "oldest", "1", later)
	writeAt(t, p, "README.md", "changed\n", later.Add(time.Hour))
	writeAt(t, p, "b-small", "1", later.Add(2*time.Hour))
	writeAt(t, p, "c-large", "123", later.Add(2*time.Hour))
	writeAt(t, p, "deep/er/a-small", "1", later.Add(2*time.Hour))
	writeAt(t, p, ".git/mine", "1", later)
	writeAt(t, p, "deep/.git/mine", "1", later)
	must(t, os.Symlink("/etc/passwd", filepath.Join(p.dir, "link")))
	must(t, os.Symlink("/etc", filepath.Join(p.dir, "dir")))
	must(t, syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o600))
	must(t, os.Remove(filepath.Join(p.dir, "empty")))
	files, more := artifacts(t, p)
	want := []task.File{
		{Path: "/workspace/c-large", Size: 3},
		{Path: "/workspace/b-small", Size: 1},
		{Path: "/workspace/deep/er/a-small", Size: 1},
		{Path: "/workspace/README.md", Size: 8},
		{Path: "/workspace/oldest", Size: 1},
	}
	if diff := cmp.Diff(want, files); diff != "" || more != 0 {
		t.Errorf("%d more, -want +got:\n%s", more, diff)
	}
}

func TestOnlySoManyArtifactsAreListed(t *testing.T) {
	p := newPlace(t, nil)
	p.fetch(t)
	for i := range 50 {
		writeAt(t, p, fmt.Sprintf("%02d", i), "x", noon.Add(time.Duration(i)*time.Second))
	}
	writeAt(t, p, strings.Repeat("long/", 60)+"name", "x", noon)
	files, more := artifacts(t, p)
	if len(files) != task.MaxFiles || more != 51-task.MaxFiles || files[0].Path != "/workspace/49" || files[19].Path != "/workspace/30" {
		t.Errorf("%d more than %v", more, files)
	}
}

// A name that is no text would not be the one that is there once it is written in
// the status, and might not fit; one with control characters is for no terminal.
func TestArtifactsHaveNamesThatCanBeShown(t *testing.T) {
	p := newPlace(t, nil)
	p.fetch(t)
	for _, name := range []string{strings.Repeat("\xff", 120), "a\x1b[2Jb", "two\nlines", "tu\u202etxt", "fine-ü"} {
		writeAt(t, p, name, "x", noon)
	}
	files, more := artifacts(t, p)
	want := []task.File{{Path: "/workspace/fine-ü", Size: 1}}
	if diff := cmp.Diff(want, files); diff != "" || more != 4 {
		t.Errorf("%d more, -want +got:\n%s", more, diff)
	}
}

// Without a fetch the first attempt says what there was, and later ones keep to it.
func TestBeginIsRecordedOnce(t *testing.T) {
	p := newPlace(t, nil)
	writeAt(t, p, "before", "x", noon)
	writeAt(t, p, "bytes\xff", "x", noon)
	if files, _ := artifacts(t, p); files != nil {
		t.Fatalf("at first there are %v", files)
	}
	writeAt(t, p, "after", "x", noon)
	for range 2 {
		if files, _ := artifacts(t, p); len(files) != 1 || files[0].Path != "/workspace/after" {
			t.Errorf("there are %v", files)
		}
	}
	record := filepath.Join(p.state, "workspace", "manifest.jsonl")
	data, err := os.ReadFile(record)
	must(t, err)
	must(t, os.WriteFile(record, data[:len(data)/2], 0o600))
	root, err := os.OpenRoot(p.dir)
	must(t, err)
	defer root.Close()
	if _, err := workspace.Begin(t.Context(), root, p.state); err == nil {
		t.Error("half a record was taken for a whole one")
	}
}
