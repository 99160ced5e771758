package image

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"os/exec"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

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
