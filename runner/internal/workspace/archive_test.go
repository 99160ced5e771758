package workspace

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// archiveOf returns what an archive contains: a line for each entry, with its content.
func archiveOf(t *testing.T, dir, name string) ([]string, error) {
	t.Helper()
	var written bytes.Buffer
	if err := WriteArchive(&written, dir, name); err != nil {
		return nil, err
	}
	var lines []string
	for r := tar.NewReader(&written); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return lines, nil
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, strings.TrimSpace(header.Name+" "+header.Linkname+string(content)))
	}
}

func newFiles(t *testing.T) string {
	t.Helper()
	outside, dir := t.TempDir(), t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(filepath.Join(outside, "key"), []byte("secret"), 0o600))
	must(os.MkdirAll(filepath.Join(dir, "docs", "empty"), 0o755))
	must(os.WriteFile(filepath.Join(dir, "docs", "report.md"), []byte("All is well."), 0o644))
	must(os.Symlink("docs/report.md", filepath.Join(dir, "latest")))
	must(os.Symlink(filepath.Join(outside, "key"), filepath.Join(dir, "docs", "key")))
	must(os.Symlink(outside, filepath.Join(dir, "outside")))
	must(syscall.Mkfifo(filepath.Join(dir, "docs", "pipe"), 0o600))
	return dir
}

func TestWriteArchive(t *testing.T) {
	dir := newFiles(t)
	outside, err := os.Readlink(filepath.Join(dir, "docs", "key"))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string][]string{
		"docs":           {"./", "empty/", "key " + outside, "report.md All is well."},
		"docs/report.md": {"report.md All is well."},
		"latest":         {"latest All is well."},
		"docs/empty":     {"./"},
	} {
		got, err := archiveOf(t, dir, name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

func TestWriteArchiveReadsNothingOutsideOfTheDirectory(t *testing.T) {
	dir := newFiles(t)
	for _, name := range []string{"docs/key", "outside", "outside/key", "../x", "/etc/passwd", "docs/pipe", "missing"} {
		if got, err := archiveOf(t, dir, name); err == nil {
			t.Errorf("%s was written: %q", name, got)
		}
	}
}
