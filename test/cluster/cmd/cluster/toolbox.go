package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/cluster"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/toolbox"
)

// loadToolbox loads into the nodes the images that resemble those of users.
func loadToolbox(ctx context.Context, s cluster.Site, args []string) error {
	o := toolbox.Options{
		CacheDir: cmp.Or(os.Getenv("CLUSTER_LAYERS"), "/var/cache/deckhand-layers"),
		Mirror:   cmp.Or(os.Getenv("CLUSTER_MIRROR"), "http://deb.debian.org/debian"),
		Say:      func(text string) { fmt.Fprintln(os.Stderr, text) },
		Now:      time.Now, //nolint:forbidigo // to tell how long it took
	}
	syscall.Umask(0o022) // files of images are for everybody
	flags := flag.NewFlagSet("cluster toolbox", flag.ExitOnError)
	flags.StringVar(&o.Registry, "registry", "deckhand.test", "what the images' names begin with")
	flags.StringVar(&o.Tag, "tag", "dev", "their tag; latest would always be pulled")
	flags.StringVar(&o.Modules, "modules", "", "`folder` where npm installed MCP servers")
	if err := flags.Parse(args); err != nil {
		return err
	}
	images, err := toolbox.Images(ctx, o)
	if err != nil {
		return err
	}
	for _, i := range images {
		if err := s.LoadOnce(ctx, i); err != nil {
			return err
		}
	}
	return nil
}
