package image

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// A packed folder is a layer below the programs, and its sums are right.
func TestPackedLayer(t *testing.T) {
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	if err := os.MkdirAll(filepath.Join(tree, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(tree, "etc", "link")); err != nil {
		t.Fatal(err)
	}
	layer, err := Pack(t.Context(), tree, filepath.Join(dir, "layer.tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Layer(layer); err != nil {
		t.Errorf("the layer is not valid: %v", err)
	}
	spec := example(t)
	spec.Layers, spec.Env, spec.WorkingDir = []Layer{layer}, []string{"PATH=/x"}, "/home"
	out := filepath.Join(dir, "image.tar")
	if _, err := Write(spec, out); err != nil {
		t.Fatal(err)
	}
	img, err := tarball.ImageFromPath(out, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Image(img); err != nil {
		t.Errorf("the image is not valid: %v", err)
	}
	if layers, err := img.Layers(); err != nil || len(layers) != 2 {
		t.Errorf("it has %d layers, %v", len(layers), err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if c := config.Config; !slices.Equal(c.Env, spec.Env) || c.WorkingDir != "/home" {
		t.Errorf("it starts in %s with %v", c.WorkingDir, c.Env)
	}
}

func TestPackingNothing(t *testing.T) {
	if _, err := Pack(t.Context(), filepath.Join(t.TempDir(), "none"), filepath.Join(t.TempDir(), "layer")); err == nil {
		t.Error("a folder that is not there was packed")
	}
}
