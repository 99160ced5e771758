package image

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func TestTheSameProgramsMakeTheSameImage(t *testing.T) {
	dir := t.TempDir()
	var sums [][32]byte
	for _, name := range []string{"a.tar", "b.tar"} {
		out := filepath.Join(dir, name)
		if _, err := Write(example(t), out); err != nil { // each has a file of its own, of another time
			t.Fatal(err)
		}
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, sha256.Sum256(data))
	}
	if sums[0] != sums[1] {
		t.Error("two builds differ")
	}
}

func TestImageHoldsWhatWasAsked(t *testing.T) {
	out := filepath.Join(t.TempDir(), "image.tar")
	size, err := Write(example(t), out)
	if err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	layers, err := img.Layers()
	if err != nil || len(layers) != 1 {
		t.Fatalf("Layers() = %v, %v; want one", layers, err)
	}
	if compressed, err := layers[0].Size(); err != nil || size <= compressed {
		t.Errorf("Write() = %d bytes, want more than the layer's %d (%v)", size, compressed, err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; !slices.Equal(c.Entrypoint, []string{"/bin/toy"}) || c.User != "65532" {
		t.Errorf("starts %v as %s", c.Entrypoint, c.User)
	}
	names := entries(t, mutate.Extract(img))
	for _, want := range []string{"tmp", "etc/passwd", "bin", "bin/toy"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is missing from %v", want, names)
		}
	}
}

func TestNameNeedsATag(t *testing.T) {
	s := example(t)
	s.Name = "deckhand.test/toy"
	if _, err := Write(s, filepath.Join(t.TempDir(), "image.tar")); err == nil {
		t.Error("a name without a tag would be latest, which is always pulled")
	}
}

func example(t *testing.T) Spec {
	t.Helper()
	program := filepath.Join(t.TempDir(), "toy")
	if err := os.WriteFile(program, []byte("not really a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	return Spec{
		Name:       "deckhand.test/toy:dev",
		Binaries:   []Binary{{Source: program, Dest: "/bin/toy"}},
		Entrypoint: "/bin/toy",
		User:       "65532",
	}
}

func entries(t *testing.T, content io.ReadCloser) []string {
	t.Helper()
	defer content.Close()
	var names []string
	for r := tar.NewReader(content); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if h.ModTime.Unix() > 0 {
			t.Errorf("%s has a time: %v", h.Name, h.ModTime)
		}
		names = append(names, h.Name)
	}
}
