package toolbox

import (
	"context"
	"fmt"
	"os"
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
