package image

import (
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// exampleOf returns an example for each architecture.
func exampleOf(t *testing.T, architectures ...string) []Spec {
	t.Helper()
	var specs []Spec
	for _, arch := range architectures {
		s := example(t)
		s.Arch, s.Labels = arch, map[string]string{"a": "b"}
		specs = append(specs, s)
	}
	return specs
}

// An image of two architectures reaches a registry as it was written.
func TestAPushedLayoutHasEachArchitecture(t *testing.T) {
	server := httptest.NewServer(registry.New())
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "layout")
	digest, err := WriteLayout(exampleOf(t, "amd64", "arm64"), dir)
	if err != nil {
		t.Fatal(err)
	}
	image := strings.TrimPrefix(server.URL, "http://") + "/toy:v1"
	if err := Push(t.Context(), dir, image); err != nil {
		t.Fatal(err)
	}
	ref, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	index, err := remote.Index(ref)
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Errorf("what the registry has is not valid: %v", err)
	}
	if got, err := index.Digest(); err != nil || got != digest {
		t.Errorf("the registry has %s (%v), want %s", got, err, digest)
	}
	for _, arch := range []string{"amd64", "arm64"} {
		img, err := remote.Image(ref, remote.WithPlatform(v1.Platform{OS: "linux", Architecture: arch}))
		if err != nil {
			t.Fatal(err)
		}
		config, err := img.ConfigFile()
		if err != nil || config.Architecture != arch || config.Config.Labels["a"] != "b" || !slices.Equal(config.Config.Entrypoint, []string{"/bin/toy"}) {
			t.Errorf("the image of %s is %+v (%v)", arch, config, err)
		}
	}
}

func TestTheSameProgramsMakeTheSameLayout(t *testing.T) {
	var digests []v1.Hash
	for range 2 {
		digest, err := WriteLayout(exampleOf(t, "amd64", "arm64"), filepath.Join(t.TempDir(), "layout"))
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, digest)
	}
	if digests[0] != digests[1] {
		t.Errorf("two builds differ: %v", digests)
	}
}

func TestPushRefusesADirectoryWithoutALayout(t *testing.T) {
	if err := Push(t.Context(), t.TempDir(), "127.0.0.1:1/toy:v1"); err == nil {
		t.Error("pushing an empty directory succeeded")
	}
}
