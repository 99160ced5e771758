package image

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// WriteLayout writes images of several architectures into a new OCI layout, as one
// index, and returns the digest of the index.
func WriteLayout(specs []Spec, directory string) (v1.Hash, error) {
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, s := range specs {
		img, err := build(s, types.OCILayer)
		if err != nil {
			return v1.Hash{}, fmt.Errorf("building image %s: %w", s.Name, err)
		}
		img = mutate.ConfigMediaType(mutate.MediaType(img, types.OCIManifestSchema1), types.OCIConfigJSON)
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        img,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: s.Arch}},
		})
	}
	if err := os.RemoveAll(directory); err != nil {
		return v1.Hash{}, fmt.Errorf("emptying the layout: %w", err)
	}
	path, err := layout.Write(directory, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("creating the layout: %w", err)
	}
	if err := path.AppendIndex(index); err != nil {
		return v1.Hash{}, fmt.Errorf("writing the layout: %w", err)
	}
	return index.Digest()
}

// Push pushes the index of a layout to a registry, with the credentials of docker login.
func Push(ctx context.Context, directory, image string) error {
	tag, err := name.NewTag(image, name.StrictValidation)
	if err != nil {
		return fmt.Errorf("reading image name: %w", err)
	}
	root, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", directory, err)
	}
	manifest, err := root.IndexManifest()
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", directory, err)
	}
	if len(manifest.Manifests) != 1 {
		return errors.New("reading the layout " + directory + ": it must have one index")
	}
	index, err := root.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return fmt.Errorf("reading the layout %s: %w", directory, err)
	}
	if err := remote.WriteIndex(tag, index, remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)); err != nil {
		return fmt.Errorf("pushing %s: %w", image, err)
	}
	return nil
}
