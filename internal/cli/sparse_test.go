package cli

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
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
			file, err := os.Create(filepath.Join(t.TempDir(), "f"))
			if err != nil {
				t.Fatal(err)
			}
			s := &sparseFile{file: file}
			for rest := content; len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
				if n, err := s.Write(rest[:min(chunk, len(rest))]); err != nil || n != min(chunk, len(rest)) {
					t.Fatalf("Write() = %d, %v", n, err)
				}
			}
			if err := s.close(); err != nil {
				t.Fatal(err)
			}
			if got, err := os.ReadFile(file.Name()); err != nil || !bytes.Equal(got, content) {
				t.Errorf("%s in chunks of %d: %d bytes, want %d (%v)", name, chunk, len(got), len(content), err)
			}
		}
	}
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
