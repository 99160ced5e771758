// Package image lays static programs in a container image, alone or on layers
// that were made before, without an engine and the same way every time.
package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Where Go, curl and openssl look for the certificates of the Internet.
const certificates = "/etc/ssl/certs/ca-certificates.crt"

const (
	users  = "root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:65532:65532:nonroot:/tmp:/sbin/nologin\n"
	groups = "root:x:0:\nnonroot:x:65532:\n"
)

// A Binary is a static program of this machine and its place in the image.
type Binary struct {
	Source string
	Dest   string
}

// A Spec describes the content of an image, and how its container starts.
type Spec struct {
	Name       string  // such as deckhand.test/runner:dev
	Arch       string  // of the programs; empty: amd64
	Layers     []Layer // that lie below the programs
	Binaries   []Binary
	Entrypoint string // empty: a pod says what it starts
	User       string
	Env        []string // instead of what programs alone need
	WorkingDir string
	Labels     map[string]string
}

// defaultEnv is all that static programs need.
var defaultEnv = []string{"PATH=/usr/local/bin:/usr/bin:/bin:/", "SSL_CERT_FILE=" + certificates}

// Write writes the image to out as a tarball that `ctr images import` and `docker load` read, and returns the number of
// bytes that a registry would send for it.
func Write(s Spec, out string) (int64, error) {
	tag, err := name.NewTag(s.Name, name.StrictValidation)
	if err != nil {
		return 0, fmt.Errorf("reading image name: %w", err)
	}
	img, err := build(s, types.DockerLayer)
	if err != nil {
		return 0, fmt.Errorf("building image %s: %w", s.Name, err)
	}
	if err := tarball.WriteToFile(out, tag, img); err != nil {
		return 0, fmt.Errorf("writing image %s: %w", s.Name, err)
	}
	return pulledSize(img)
}

// build builds an image. The layer with the programs has the media type.
func build(s Spec, mediaType types.MediaType) (v1.Image, error) {
	layers, err := s.layers(mediaType)
	if err != nil {
		return nil, err
	}
	img, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("appending layers: %w", err)
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading configuration: %w", err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", cmp.Or(s.Arch, "amd64")
	config.Config.Labels = s.Labels
	if s.Entrypoint != "" {
		config.Config.Entrypoint = []string{s.Entrypoint}
	}
	config.Config.User, config.Config.Env, config.Config.WorkingDir = s.User, s.Env, s.WorkingDir
	if s.Env == nil {
		config.Config.Env = defaultEnv
	}
	return mutate.ConfigFile(img, config)
}

// layers returns the existing layers of s, followed by a layer with its programs if it has any.
func (s Spec) layers(mediaType types.MediaType) ([]v1.Layer, error) {
	var layers []v1.Layer
	for _, layer := range s.Layers {
		layers = append(layers, layer)
	}
	if len(s.Binaries) == 0 {
		return layers, nil
	}
	content, err := files(s.Binaries)
	if err != nil {
		return nil, err
	}
	top, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(content)), nil
	}, tarball.WithCompressedCaching, tarball.WithMediaType(mediaType))
	if err != nil {
		return nil, fmt.Errorf("compressing layer: %w", err)
	}
	return append(layers, top), nil
}

// files returns the layer as a tar, with each folder before its files and without times.
func files(binaries []Binary) ([]byte, error) {
	var buf bytes.Buffer
	l := &layer{w: tar.NewWriter(&buf), made: map[string]bool{".": true}}
	if err := l.dir("tmp", 0o1777); err != nil {
		return nil, err
	}
	if err := l.file("etc/passwd", 0o644, []byte(users)); err != nil {
		return nil, err
	}
	if err := l.file("etc/group", 0o644, []byte(groups)); err != nil {
		return nil, err
	}
	if err := l.certificates(); err != nil {
		return nil, err
	}
	for _, b := range binaries {
		data, err := os.ReadFile(b.Source)
		if err != nil {
			return nil, fmt.Errorf("reading program: %w", err)
		}
		if err := l.file(b.Dest, 0o755, data); err != nil {
			return nil, err
		}
	}
	return buf.Bytes(), l.w.Close()
}

// A layer is a tar under construction.
type layer struct {
	w    *tar.Writer
	made map[string]bool // folders already written
}

func (l *layer) certificates() error {
	data, err := os.ReadFile(certificates)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // a machine without them makes images without them
	}
	if err != nil {
		return fmt.Errorf("reading certificates: %w", err)
	}
	return l.file(certificates, 0o644, data)
}

func (l *layer) dir(dest string, mode int64) error {
	dest = path.Clean(dest)
	if l.made[dest] {
		return nil
	}
	if err := l.dir(path.Dir(dest), 0o755); err != nil {
		return err
	}
	l.made[dest] = true
	return l.header(&tar.Header{Typeflag: tar.TypeDir, Name: dest + "/", Mode: mode})
}

func (l *layer) file(dest string, mode int64, data []byte) error {
	dest = path.Clean("/" + dest)[1:]
	if err := l.dir(path.Dir(dest), 0o755); err != nil {
		return err
	}
	if err := l.header(&tar.Header{Typeflag: tar.TypeReg, Name: dest, Mode: mode, Size: int64(len(data))}); err != nil {
		return err
	}
	if _, err := l.w.Write(data); err != nil {
		return fmt.Errorf("adding %s: %w", dest, err)
	}
	return nil
}

func (l *layer) header(h *tar.Header) error {
	if err := l.w.WriteHeader(h); err != nil {
		return fmt.Errorf("adding %s: %w", h.Name, err)
	}
	return nil
}

// pulledSize returns the size of layers, configuration and manifest together, in bytes.
func pulledSize(img v1.Image) (int64, error) {
	manifest, err := img.Manifest()
	if err != nil {
		return 0, fmt.Errorf("reading manifest: %w", err)
	}
	size, err := img.Size()
	if err != nil {
		return 0, fmt.Errorf("reading manifest: %w", err)
	}
	for _, blob := range slices.Concat(manifest.Layers, []v1.Descriptor{manifest.Config}) {
		size += blob.Size
	}
	return size, nil
}

// A Layer is a gzipped tar in a file, with its digests and sizes, which take seconds to compute.
type Layer struct {
	File   string  `json:"file"`
	Length int64   `json:"length"`
	Sum    v1.Hash `json:"sum"`     // of the file
	RawSum v1.Hash `json:"raw_sum"` // of the tar in it
}

// Pack makes a layer of a folder and keeps owners and times.
func Pack(ctx context.Context, folder, out string) (Layer, error) {
	f, err := os.Create(out)
	if err != nil {
		return Layer{}, fmt.Errorf("creating layer: %w", err)
	}
	l, err := pack(ctx, folder, f)
	if err := errors.Join(err, f.Close()); err != nil {
		return Layer{}, fmt.Errorf("packing %s: %w", folder, err)
	}
	return l, nil
}

func pack(ctx context.Context, folder string, f *os.File) (Layer, error) {
	sum, rawSum := sha256.New(), sha256.New()
	zip, err := gzip.NewWriterLevel(io.MultiWriter(f, sum), gzip.BestSpeed)
	if err != nil {
		return Layer{}, err
	}
	// Debian's tar knows of hard links and odd owners what there is to know.
	cmd := exec.CommandContext(ctx, "tar", "--numeric-owner", "--sort=name", "-C", folder, "-cf", "-", ".")
	cmd.Stdout, cmd.Stderr = io.MultiWriter(zip, rawSum), os.Stderr
	if err := errors.Join(cmd.Run(), zip.Close()); err != nil {
		return Layer{}, err
	}
	info, err := f.Stat()
	if err != nil {
		return Layer{}, err
	}
	return Layer{File: f.Name(), Length: info.Size(), Sum: hashOf(sum), RawSum: hashOf(rawSum)}, nil
}

func hashOf(h hash.Hash) v1.Hash {
	return v1.Hash{Algorithm: "sha256", Hex: hex.EncodeToString(h.Sum(nil))}
}

// Digest returns the sum of the file.
func (l Layer) Digest() (v1.Hash, error) { return l.Sum, nil }

// DiffID returns the sum of the tar.
func (l Layer) DiffID() (v1.Hash, error) { return l.RawSum, nil }

// Size returns the length of the file.
func (l Layer) Size() (int64, error) { return l.Length, nil }

// MediaType returns the type of a gzipped tar.
func (Layer) MediaType() (types.MediaType, error) { return types.DockerLayer, nil }

// Compressed reads the file.
func (l Layer) Compressed() (io.ReadCloser, error) { return os.Open(l.File) }

// Uncompressed reads the tar.
func (l Layer) Uncompressed() (io.ReadCloser, error) {
	f, err := os.Open(l.File)
	if err != nil {
		return nil, err
	}
	zip, err := gzip.NewReader(f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return unzipped{zip, f}, nil
}

// unzipped reads a tar and closes its file.
type unzipped struct {
	io.Reader
	io.Closer
}

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
	written, err := layout.Write(directory, empty.Index)
	if err != nil {
		return v1.Hash{}, fmt.Errorf("creating the layout: %w", err)
	}
	if err := written.AppendIndex(index); err != nil {
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
