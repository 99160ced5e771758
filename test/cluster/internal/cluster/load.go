package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/image"
)

// Load imports image tarballs, so that pods can use them without pulling.
func (s Site) Load(ctx context.Context, tarballs ...string) error {
	return s.eachNode(func(n node) error { return n.load(ctx, tarballs...) })
}

func (n node) load(ctx context.Context, tarballs ...string) error {
	for _, t := range tarballs {
		if _, err := n.ctr(ctx, "images", "import", t); err != nil {
			return fmt.Errorf("loading %s: %w", t, err)
		}
	}
	return nil
}

// loadPause loads the image of the pause container, which each pod has, into the nodes.
func (s Site) loadPause(ctx context.Context) error {
	lacking, err := s.lacking(ctx, "name=="+pauseImage)
	if err != nil || len(lacking) == 0 {
		return err
	}
	tarball := s.Path("run", "pause.tar")
	defer func() { _ = os.Remove(tarball) }() // goes with the folder at the latest
	if _, err := image.Write(image.Spec{
		Name:       pauseImage,
		Binaries:   []image.Binary{{Source: s.Pause, Dest: "/pause"}},
		Entrypoint: "/pause",
		User:       "65535:65535",
	}, tarball); err != nil {
		return err
	}
	return s.Load(ctx, tarball)
}

// madeOf is the label of a loaded image that identifies the layers of which it was made.
const madeOf = "deckhand.test/made-of"

// LoadOnce makes an image of cached layers and loads it into each node, unless the node already has it with the same
// layers.
func (s Site) LoadOnce(ctx context.Context, spec image.Spec) error {
	encoded, err := json.Marshal(spec)
	if err != nil {
		return fmt.Errorf("encoding image %s: %w", spec.Name, err)
	}
	label := fmt.Sprintf("%x", sha256.Sum256(encoded))
	lacking, err := s.lacking(ctx, fmt.Sprintf("name==%s,labels.%q==%s", spec.Name, madeOf, label))
	if err != nil || len(lacking) == 0 {
		return err
	}
	tarball := s.Path("run", "loading.tar")
	defer func() { _ = os.Remove(tarball) }() // goes with the folder at the latest
	if _, err := image.Write(spec, tarball); err != nil {
		return err
	}
	return s.eachNode(func(n node) error {
		if !slices.Contains(lacking, n.name()) {
			return nil
		}
		if err := n.load(ctx, tarball); err != nil {
			return err
		}
		_, err := n.ctr(ctx, "images", "label", spec.Name, madeOf+"="+label)
		return err
	})
}

// lacking lists the names of the nodes without an image that fits the filter.
func (s Site) lacking(ctx context.Context, filter string) ([]string, error) {
	var names []string
	for _, n := range s.nodes() {
		there, err := n.ctr(ctx, "images", "list", "-q", filter)
		if err != nil {
			return nil, err
		}
		if there == "" {
			names = append(names, n.name())
		}
	}
	return names, nil
}

func (n node) ctr(ctx context.Context, args ...string) (string, error) {
	args = append([]string{"--address", n.containerd(), "--namespace", criNamespace}, args...)
	out, err := exec.CommandContext(ctx, "ctr", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("running ctr: %w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}
