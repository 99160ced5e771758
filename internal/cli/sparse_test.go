package cli

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

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
