// Package toolbox makes images that resemble those of users: a Debian with a shell, git, Python and Go, and a Debian
// with Node.js and MCP servers. It makes them from the mirror of Debian and from programs of this machine, without a
// container engine.
//
//	toolbox:dev   Debian ── Go, its standard library compiled
//	mcp:dev       Debian ── Node.js, MCP servers
//
// A layer takes minutes to make and is therefore cached, outside of clones and clusters, under a name with a hash of
// its inputs.
package toolbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/image"
)

// Options are the names of the images and the sources of their layers.
type Options struct {
	Registry string // what the images' names begin with
	Tag      string
	CacheDir string // the folder of layers, which outlives clones and clusters
	Mirror   string // of Debian
	Modules  string // the folder where npm installed MCP servers; empty: none
	Say      func(string)
	Now      func() time.Time
}

// path is the PATH of containers.
const path = "PATH=/usr/local/sbin:/usr/local/bin:" + goRoot + "/bin:" + modules + "/node_modules/.bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Images makes the layers that are not cached and returns the images: toolbox, and mcp if MCP servers are installed.
func Images(ctx context.Context, o Options) ([]image.Spec, error) {
	c := layerCache{dir: o.CacheDir, say: o.Say, now: o.Now}
	osRelease, err := os.ReadFile("/etc/os-release")
	if err != nil {
		return nil, fmt.Errorf("finding out what this machine runs: %w", err)
	}
	base, err := c.layer(ctx, debian(release(string(osRelease)), o.Mirror, o.Say))
	if err != nil {
		return nil, err
	}
	version, root, err := goOf(ctx)
	if err != nil {
		return nil, err
	}
	tools, err := c.layer(ctx, golang(version, root))
	if err != nil {
		return nil, err
	}
	images := []image.Spec{{
		Name: o.name("toolbox"), Layers: []image.Layer{base, tools}, User: user, WorkingDir: home,
		Env: []string{path, "GOTOOLCHAIN=local", "LANG=C.UTF-8"},
	}}
	if !installed(o.Modules) {
		o.Say("no MCP servers are installed (npm is missing?), so there is no image " + o.name("mcp"))
		return images, nil
	}
	servers, err := node(ctx, o.Modules)
	if err != nil {
		return nil, err
	}
	top, err := c.layer(ctx, servers)
	if err != nil {
		return nil, err
	}
	return append(images, image.Spec{
		Name: o.name("mcp"), Layers: []image.Layer{base, top}, User: user, WorkingDir: home,
		Env: []string{path, "LANG=C.UTF-8"},
	}), nil
}

// installed reports whether npm has installed packages in a folder.
func installed(folder string) bool {
	_, err := os.Stat(filepath.Join(folder, "node_modules"))
	return folder != "" && err == nil
}

func (o Options) name(program string) string {
	return fmt.Sprintf("%s/%s:%s", o.Registry, program, o.Tag)
}

// modules is the directory of Node.js packages in the image.
const modules = "/opt/mcp"

// node returns the layer of this machine's Node.js and of packages that npm installed
// in a folder.
func node(ctx context.Context, installed string) (layer, error) {
	program, err := output(exec.CommandContext(ctx, "node", "--print", "process.execPath"))
	if err != nil {
		return layer{}, err
	}
	version, err := output(exec.CommandContext(ctx, program, "--version"))
	if err != nil {
		return layer{}, err
	}
	lock, err := os.ReadFile(filepath.Join(installed, "package-lock.json"))
	if err != nil {
		return layer{}, fmt.Errorf("reading which packages are installed: %w", err)
	}
	return layer{
		name:   "node",
		inputs: []string{"1", program, version, fmt.Sprintf("%x", sha256.Sum256(lock))},
		fill: func(ctx context.Context, root string) error {
			err := copyTree(ctx, filepath.Dir(program), filepath.Join(root, "usr/local/bin"), filepath.Base(program))
			if err != nil {
				return err
			}
			return copyTree(ctx, installed, filepath.Join(root, modules), "--exclude=*.d.ts", "--exclude=*.map", "node_modules")
		},
	}, nil
}
