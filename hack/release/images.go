package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

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
