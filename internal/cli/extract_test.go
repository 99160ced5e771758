package cli

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// archived returns an archive of entries: NAME is a file with its name as content, NAME/ a
// directory, and NAME -> TARGET a symbolic link.
func archived(t *testing.T, entries ...string) *bytes.Buffer {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, entry := range entries {
		name, target, isLink := strings.Cut(entry, " -> ")
		header := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o4755, Size: int64(len(name))}
		switch {
		case isLink:
			header.Typeflag, header.Linkname, header.Size = tar.TypeSymlink, target, 0
		case strings.HasSuffix(name, "/"):
			header.Typeflag, header.Size = tar.TypeDir, 0
		}
		if err := w.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if _, err := w.Write([]byte(name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &out
}

func newExtractor(local, name string) (*extractor, *bytes.Buffer) {
	var out bytes.Buffer
	return &extractor{out: &out, local: local, name: name, progress: func(copied) {}}, &out
}

// filesIn lists the files below a directory with their modes.
func filesIn(t *testing.T, dir string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		name, _ := filepath.Rel(dir, path)
		files = append(files, name+" "+info.Mode().String())
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestExtractDirectory(t *testing.T) {
	dir := t.TempDir()
	e, _ := newExtractor(filepath.Join(dir, "files"), ".")
	if err := e.extract(archived(t, "./", "a/", "a/b.txt", "link -> a")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"files/a/b.txt -rwxr-xr-x"}, filesIn(t, dir)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"link -> a"}, e.links); diff != "" {
		t.Errorf("links: -want +got:\n%s", diff)
	}
	if got := e.copied.String(); got != "1 file, 7 bytes" {
		t.Errorf("copied %s", got)
	}
}

func TestExtractFile(t *testing.T) {
	dir := t.TempDir()
	for local, want := range map[string]string{dir: "report.md", filepath.Join(dir, "as.md"): "as.md"} {
		e, _ := newExtractor(local, "report.md")
		if err := e.extract(archived(t, "../evil")); err != nil {
			t.Fatal(err)
		}
		if content, err := os.ReadFile(filepath.Join(dir, want)); err != nil || string(content) != "../evil" {
			t.Errorf("%s: %q, %v", want, content, err)
		}
	}
	e, out := newExtractor("-", "report.md")
	if err := e.extract(archived(t, "report.md")); err != nil || out.String() != "report.md" {
		t.Errorf("printed %q, %v", out, err)
	}
}

// The workspace, and the pod that sends it, may be hostile.
func TestExtractWritesNothingOutsideOfTheDirectory(t *testing.T) {
	for _, entries := range [][]string{
		{"./", "../evil"},
		{"./", "/evil"},
		{"./", "a/../../evil"},
		{"./", "out -> ..", "out/evil"},
		{"./", "kept/evil"},
	} {
		dir := t.TempDir()
		local := filepath.Join(dir, "files")
		if err := os.Mkdir(local, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("..", filepath.Join(local, "kept")); err != nil {
			t.Fatal(err)
		}
		e, _ := newExtractor(local, ".")
		e.force = true
		_ = e.extract(archived(t, entries...)) // an error, or a file inside
		if _, err := os.Lstat(filepath.Join(dir, "evil")); err == nil {
			t.Errorf("%q wrote outside of the directory", entries)
		}
	}
}

func TestExtractKeepsFilesThatExist(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(t.TempDir(), "precious")
	for _, file := range []string{precious, filepath.Join(dir, "a")} {
		if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(precious, filepath.Join(dir, "b")); err != nil {
		t.Fatal(err)
	}
	for _, entry := range []string{"a", "b"} {
		e, _ := newExtractor(dir, ".")
		if err := e.extract(archived(t, "./", entry)); err == nil || !strings.Contains(err.Error(), "--force") {
			t.Errorf("%s: %v", entry, err)
		}
	}
	e, _ := newExtractor(dir, ".")
	e.force = true
	if err := e.extract(archived(t, "./", "a", "b")); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]string{precious: "old", filepath.Join(dir, "a"): "a", filepath.Join(dir, "b"): "b"} {
		if content, err := os.ReadFile(file); err != nil || string(content) != want {
			t.Errorf("%s has %q: %v", file, content, err)
		}
	}
}

func TestExtractReportsACutArchive(t *testing.T) {
	e, _ := newExtractor(t.TempDir(), ".")
	whole := archived(t, "./", "a").Bytes()
	for _, n := range []int{0, 600, 1024} {
		if err := e.extract(bytes.NewReader(whole[:n])); err == nil {
			t.Errorf("an archive of %d bytes has no error", n)
		}
	}
}

func TestABrokenCopyLeavesNothingHalf(t *testing.T) {
	whole := archived(t, "./", "report.md").Bytes()
	cut := whole[:len(whole)-3*512+3] // 3 bytes of report.md: its block and the two at the end are left out
	for _, old := range []string{"", "old"} {
		local := t.TempDir()
		report := filepath.Join(local, "report.md")
		e, _ := newExtractor(local, ".")
		if e.force = old != ""; e.force {
			writeFile(t, report, old)
		}
		if err := e.extract(bytes.NewReader(cut)); err == nil {
			t.Fatal("a cut archive is no error")
		}
		if text, _ := os.ReadFile(report); string(text) != old || len(filesIn(t, local)) > 1 {
			t.Errorf("the file has %q, want %q; there are %q", text, old, filesIn(t, local))
		}
		if err := e.extract(bytes.NewReader(whole)); err != nil {
			t.Errorf("the next copy: %v", err)
		}
		if text, _ := os.ReadFile(report); string(text) != "report.md" {
			t.Errorf("then the file has %q", text)
		}
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHolesStayHoles(t *testing.T) {
	for name, content := range map[string][]byte{
		"zeros":              make([]byte, 3*holeSize),
		"a hole at the end":  append([]byte("a"), make([]byte, 5*holeSize)...),
		"a hole within":      append(append([]byte("a"), make([]byte, 4*holeSize+7)...), 'b'),
		"no hole":            bytes.Repeat([]byte("ab"), holeSize),
		"less than a block":  {0, 0, 0},
		"nothing":            {},
		"zeros between text": []byte("a\x00\x00b"),
	} {
		for _, chunk := range []int{1, 1000, holeSize, 32 << 10} {
			if got := writtenSparse(t, content, chunk); !bytes.Equal(got, content) {
				t.Errorf("%s in chunks of %d: %d bytes, want %d", name, chunk, len(got), len(content))
			}
		}
	}
}

// writtenSparse returns what a file has after content was written to it in chunks.
func writtenSparse(t *testing.T, content []byte, chunk int) []byte {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "f"))
	if err != nil {
		t.Fatal(err)
	}
	s := &sparseFile{file: file}
	for part := range slices.Chunk(content, chunk) {
		if n, err := s.Write(part); err != nil || n != len(part) {
			t.Fatalf("Write() = %d, %v", n, err)
		}
	}
	if err := s.close(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestHugeFilesAreNotCopied(t *testing.T) {
	var archive bytes.Buffer
	out := tar.NewWriter(&archive)
	for _, h := range []*tar.Header{{Name: "d/", Typeflag: tar.TypeDir, Mode: 0o755}, {Name: "sparse", Typeflag: tar.TypeReg, Mode: 0o644, Size: 1 << 62, Format: tar.FormatPAX}} {
		if err := out.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	local := filepath.Join(t.TempDir(), "copy")
	e := &extractor{local: local, name: "d", progress: func(copied) {}}
	if err := e.extract(&archive); err == nil || !strings.Contains(err.Error(), "sparse has 4294967296.0 GiB") || !strings.Contains(err.Error(), "at most 64.0 GiB in one file") {
		t.Errorf("extract() = %v", err)
	}
	if left, err := os.ReadDir(local); err != nil || len(left) > 0 {
		t.Errorf("%v is left (%v)", left, err)
	}
}
