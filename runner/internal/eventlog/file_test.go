package eventlog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stored returns the files of a directory in the order in which they are read.
func stored(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, string(content))
	}
	return all
}

func openFile(t *testing.T, dir string) *File {
	t.Helper()
	f, err := OpenFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func writeLines(t *testing.T, f *File, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		if _, err := fmt.Fprintf(f, "%03d\n", i); err != nil {
			t.Fatal(err)
		}
	}
}

func TestAFileKeepsTheLastLinesInOrder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	f := openFile(t, dir)
	f.max = 40
	writeLines(t, f, 0, 37)
	all := stored(t, dir)
	if len(all) != 2 || len(all[0]) != 40 || len(all[1]) > 40 {
		t.Fatalf("stored %q", all)
	}
	if text := strings.Join(all, ""); !strings.HasPrefix(text, "020\n021\n") || !strings.HasSuffix(text, "035\n036\n") || strings.Count(text, "\n") != 17 {
		t.Errorf("stored %q", text)
	}
}

func TestALineThatAKilledRunnerBeganIsEnded(t *testing.T) {
	dir := t.TempDir()
	f := openFile(t, dir)
	if _, err := f.Write([]byte("whole\nbeg")); err != nil {
		t.Fatal(err)
	}
	writeLines(t, openFile(t, dir), 7, 8)
	if got := stored(t, dir); len(got) != 1 || got[0] != "whole\nbeg\n007\n" {
		t.Errorf("stored %q", got)
	}
}

func TestAFileThatFailedStoresNothingMore(t *testing.T) {
	f := openFile(t, t.TempDir())
	_ = f.latest.Close()
	for range 2 {
		if _, err := f.Write([]byte("x\n")); err == nil {
			t.Error("Write returned no error")
		}
	}
}
