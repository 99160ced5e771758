package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// An entry is a file of an archive.
type entry struct {
	name string
	mode os.FileMode
	data []byte
}

// archive writes files, under their base names, into a .tar.gz or a .zip.
func (r release) archive(out string, files []string) error {
	var entries []entry
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("reading what to archive: %w", err)
		}
		mode := os.FileMode(0o644)
		if info, err := os.Stat(file); err == nil && info.Mode()&0o111 != 0 {
			mode = 0o755
		}
		entries = append(entries, entry{name: filepath.Base(file), mode: mode, data: data})
	}
	write := r.writeTar
	if strings.HasSuffix(out, ".zip") {
		write = r.writeZip
	}
	return write(out, entries)
}

// repack writes a .tar.gz anew, so that it does not depend on when it was made.
func (r release) repack(file string) error {
	entries, err := readTar(file)
	if err != nil {
		return fmt.Errorf("reading %s: %w", file, err)
	}
	return r.writeTar(file, entries)
}

func readTar(file string) ([]entry, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var entries []entry
	for t := tar.NewReader(unzipped); ; {
		header, err := t.Next()
		if errors.Is(err, io.EOF) {
			return entries, nil
		}
		if err != nil {
			return nil, err
		}
		content, err := io.ReadAll(t)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{name: header.Name, mode: 0o644, data: content})
	}
}

// writeTar writes a .tar, or a .tar.gz or .tgz.
func (r release) writeTar(out string, entries []entry) error {
	sortEntries(entries)
	var buf bytes.Buffer
	if strings.HasSuffix(out, ".tar") {
		if err := r.addTar(&buf, entries); err != nil {
			return err
		}
		return writeFile(out, buf.Bytes())
	}
	zipped, err := gzip.NewWriterLevel(&buf, gzip.BestCompression)
	if err != nil {
		return err
	}
	if err := errors.Join(r.addTar(zipped, entries), zipped.Close()); err != nil {
		return err
	}
	return writeFile(out, buf.Bytes())
}

// addTar writes entries as a tar archive.
func (r release) addTar(w io.Writer, entries []entry) error {
	t := tar.NewWriter(w)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: int64(e.mode), Size: int64(len(e.data)), ModTime: r.time}
		if err := t.WriteHeader(header); err != nil {
			return err
		}
		if _, err := t.Write(e.data); err != nil {
			return err
		}
	}
	return t.Close()
}

func (r release) writeZip(out string, entries []entry) error {
	sortEntries(entries)
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) {
		return flate.NewWriter(w, flate.BestCompression)
	})
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: r.time}
		header.SetMode(e.mode)
		w, err := z.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := w.Write(e.data); err != nil {
			return err
		}
	}
	if err := z.Close(); err != nil {
		return err
	}
	return writeFile(out, buf.Bytes())
}

func sortEntries(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
}

func writeFile(out string, data []byte) error {
	return os.WriteFile(out, data, 0o644)
}

// An ociIndex is the index.json of an OCI layout, with the fields that are used here.
type ociIndex struct {
	SchemaVersion int             `json:"schemaVersion"`
	MediaType     string          `json:"mediaType"`
	Manifests     []ociDescriptor `json:"manifests"`
}

type ociDescriptor struct {
	MediaType   string            `json:"mediaType"`
	Size        int64             `json:"size"`
	Digest      string            `json:"digest"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

// imageName is the annotation by which containerd and docker name an image that they import.
const imageName = "io.containerd.image.name"

const (
	indexFile = "index.json"
	mediaType = "application/vnd.oci.image.index.v1+json"
)

var errNotOneImage = errors.New("the layout must have one image")

// images writes one OCI archive of images, for clusters without a registry. Each image is
// REPOSITORY:TAG=LAYOUT. It has two names: one with its tag, and one with its digest.
func (r release) images(out string, images []string) error {
	index := ociIndex{SchemaVersion: 2, MediaType: mediaType}
	blobs := map[string]entry{}
	for _, image := range images {
		name, layout, _ := strings.Cut(image, "=")
		descriptor, err := addLayout(blobs, layout)
		if err != nil {
			return fmt.Errorf("reading the layout of %s: %w", name, err)
		}
		repository := name[:strings.LastIndex(name, ":")]
		for _, named := range []string{name, repository + "@" + descriptor.Digest} {
			descriptor.Annotations = map[string]string{imageName: named}
			index.Manifests = append(index.Manifests, descriptor)
		}
	}
	data, err := json.Marshal(index)
	if err != nil {
		return fmt.Errorf("writing the index: %w", err)
	}
	entries := []entry{{name: indexFile, mode: 0o644, data: data}, {name: "oci-layout", mode: 0o644, data: []byte(`{"imageLayoutVersion":"1.0.0"}`)}}
	for _, e := range blobs {
		entries = append(entries, e)
	}
	return r.writeTar(out, entries)
}

// addLayout adds the blobs of a layout, and returns the descriptor of its only image.
func addLayout(blobs map[string]entry, layout string) (ociDescriptor, error) {
	root := os.DirFS(layout)
	data, err := fs.ReadFile(root, indexFile)
	if err != nil {
		return ociDescriptor{}, err
	}
	var index ociIndex
	if err := json.Unmarshal(data, &index); err != nil {
		return ociDescriptor{}, fmt.Errorf("decoding %s: %w", indexFile, err)
	}
	if len(index.Manifests) != 1 {
		return ociDescriptor{}, errNotOneImage
	}
	return index.Manifests[0], fs.WalkDir(root, "blobs", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, path)
		blobs[path] = entry{name: path, mode: 0o644, data: data}
		return err
	})
}
