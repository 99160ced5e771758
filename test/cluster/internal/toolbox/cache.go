package toolbox

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/image"
)

// kept is how many versions of a layer are kept, because clones of different commits share the cache.
const kept = 3

// making is the prefix of folders with unfinished layers.
const making = ".making-"

// A layer is a part of images.
type layer struct {
	name   string
	inputs []string // all that decides what it holds
	fill   func(ctx context.Context, root string) error
}

// file returns the file name of a layer, which contains a hash of its inputs.
func (l layer) file() string {
	sum := sha256.Sum256([]byte(strings.Join(l.inputs, "\x00")))
	return fmt.Sprintf("%s-%x", l.name, sum[:8])
}

// A layerCache stores layers on this machine.
type layerCache struct {
	dir string
	say func(string)
	now func() time.Time
}

// layer makes a layer unless it is cached.
func (c layerCache) layer(ctx context.Context, l layer) (image.Layer, error) {
	unlock, err := c.lock()
	if err != nil {
		return image.Layer{}, err
	}
	defer unlock()
	folder := filepath.Join(c.dir, l.file())
	if made, err := c.read(folder); err == nil {
		return made, nil
	}
	begin := c.now()
	c.say(fmt.Sprintf("making the layer %s, once for this machine", l.name))
	if err := c.make(ctx, l, folder); err != nil {
		return image.Layer{}, fmt.Errorf("making layer %s: %w", l.name, err)
	}
	c.say(fmt.Sprintf("made the layer %s in %.0fs", l.name, c.now().Sub(begin).Seconds()))
	if err := c.prune(l.name); err != nil {
		return image.Layer{}, err
	}
	return c.read(folder)
}

// The files of a cached layer: the layer, and its description.
const (
	packed = "layer.tar.gz"
	facts  = "layer.json"
)

// read returns a cached layer and remembers that it was used.
func (c layerCache) read(folder string) (image.Layer, error) {
	data, err := os.ReadFile(filepath.Join(folder, facts))
	if err != nil {
		return image.Layer{}, err
	}
	var made image.Layer
	if err := json.Unmarshal(data, &made); err != nil {
		return image.Layer{}, fmt.Errorf("reading %s: %w", folder, err)
	}
	made.File = filepath.Join(folder, packed)
	if info, err := os.Stat(made.File); err != nil || info.Size() != made.Length {
		return image.Layer{}, fmt.Errorf("%s is damaged: %w", made.File, err)
	}
	return made, os.Chtimes(folder, time.Time{}, c.now())
}

// make fills a tree and packs it. An interrupted call leaves no layer.
func (c layerCache) make(ctx context.Context, l layer, folder string) error {
	work, err := os.MkdirTemp(c.dir, making)
	if err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer os.RemoveAll(work) //nolint:errcheck // prune takes it the next time
	tree, result := filepath.Join(work, "tree"), filepath.Join(work, "result")
	for _, dir := range []string{tree, result} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return fmt.Errorf("making a folder: %w", err)
		}
	}
	if err := l.fill(ctx, tree); err != nil {
		return err
	}
	made, err := image.Pack(ctx, tree, filepath.Join(result, packed))
	if err != nil {
		return err
	}
	data, err := json.Marshal(made)
	if err != nil {
		return fmt.Errorf("encoding what is known of the layer: %w", err)
	}
	if err := os.WriteFile(filepath.Join(result, facts), data, 0o644); err != nil {
		return fmt.Errorf("writing what is known of the layer: %w", err)
	}
	if err := os.RemoveAll(folder); err != nil { // a damaged one
		return fmt.Errorf("removing a damaged layer: %w", err)
	}
	return os.Rename(result, folder)
}

// prune removes the layers of a name except the most recently used ones, and the files of earlier calls that were
// interrupted.
func (c layerCache) prune(name string) error {
	type aged struct {
		folder string
		used   time.Time
	}
	var layers []aged
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return fmt.Errorf("pruning layers: %w", err)
	}
	var errs []error
	for _, e := range entries {
		folder := filepath.Join(c.dir, e.Name())
		if strings.HasPrefix(e.Name(), making) {
			errs = append(errs, os.RemoveAll(folder))
		} else if info, err := e.Info(); err == nil && strings.HasPrefix(e.Name(), name+"-") {
			layers = append(layers, aged{folder, info.ModTime()})
		}
	}
	slices.SortFunc(layers, func(a, b aged) int { return b.used.Compare(a.used) })
	for _, l := range layers[min(kept, len(layers)):] {
		errs = append(errs, os.RemoveAll(l.folder))
	}
	return errors.Join(errs...)
}

// lock keeps two processes from making the same layer at once.
func (c layerCache) lock() (unlock func(), err error) {
	if err := os.MkdirAll(c.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of layers: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(c.dir, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening lock: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("locking: %w", err), f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// output runs a program and returns its output, trimmed. An error contains its output and its error output.
func output(cmd *exec.Cmd) (string, error) {
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running %s: %w\n%s%s", filepath.Base(cmd.Path), err, out.Bytes(), complaints.Bytes())
	}
	return strings.TrimSpace(out.String()), nil
}
