// Command cluster makes a real Kubernetes on a bare machine, feeds it images and
// takes it away again. See `cluster help`.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/test/cluster/internal/cluster"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/enforce"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/toolbox"
	"github.com/deckhand-dev/deckhand/test/cluster/internal/volumes"
)

const usage = `usage: cluster <verb>

  up                     bring the cluster up, or back up
  down                   take it away
  status                 what runs
  load IMAGE.tar ...     give the nodes images
  image -name N ...      make an image of static programs (image -h)
  push DIR NAME          push an image of image -layout to a registry
  toolbox                give the nodes images with a shell, git, Python, Go and
                         MCP servers, and make them first (toolbox -h)
  assets DIR             make DIR what KUBEBUILDER_ASSETS points to

Needs root. Environment, with defaults:
  CLUSTER_DIR   /var/lib/deckhand-cluster   everything it keeps
  CLUSTER_NAME  deckhand-cluster            first node, network namespace, cgroup; the second has -2 after it
  CLUSTER_PORT  16443                       of the API server on 127.0.0.1
  CLUSTER_K8S   k8s beside this program
  CLUSTER_PAUSE pause beside this program
  CLUSTER_POLICIES  None   how NetworkPolicies take effect: None, Enforced, or Delayed by
                two seconds; a namespace chooses by the label deckhand.test/policies
  CLUSTER_LAYERS  /var/cache/deckhand-layers      layers that were made once
  CLUSTER_MIRROR  http://deb.debian.org/debian    where Debian comes from
`

// A verb runs one command, such as cluster up.
type verb func(ctx context.Context, s cluster.Site, args []string) error

var verbs = map[string]verb{
	"up":       func(ctx context.Context, s cluster.Site, _ []string) error { return s.Up(ctx, os.Stdout) },
	"down":     func(ctx context.Context, s cluster.Site, _ []string) error { return s.Down(ctx) },
	"status":   func(ctx context.Context, s cluster.Site, _ []string) error { return s.Status(ctx, os.Stdout) },
	"load":     func(ctx context.Context, s cluster.Site, args []string) error { return s.Load(ctx, args...) },
	"image":    makeImage,
	"push":     pushLayout,
	"toolbox":  loadToolbox,
	"assets":   makeAssets,
	"gate":     openGate,      // started by up
	"volumes":  serveVolumes,  // also
	"policies": servePolicies, // also
	"help":     help,
}

func main() { os.Exit(run()) } //nolint:forbidigo // this is main

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if len(os.Args) < 2 || verbs[os.Args[1]] == nil {
		fmt.Fprint(os.Stderr, usage)
		return 2
	}
	site, err := cluster.SiteFromEnv()
	if err == nil {
		err = verbs[os.Args[1]](ctx, site, os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "cluster:", err)
		return 1
	}
	return 0
}

func help(context.Context, cluster.Site, []string) error {
	_, err := fmt.Fprint(os.Stdout, usage)
	return err
}

func makeAssets(_ context.Context, s cluster.Site, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("assets takes one folder")
	}
	return s.Assets(args[0])
}

func openGate(ctx context.Context, _ cluster.Site, args []string) error {
	if len(args) != 2 {
		return fmt.Errorf("gate takes an address and a namespace")
	}
	return cluster.Gate(ctx, args[0], args[1])
}

func serveVolumes(ctx context.Context, _ cluster.Site, args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("volumes takes a kubeconfig, a folder and nodes")
	}
	return volumes.Serve(ctx, volumes.Options{Kubeconfig: args[0], Dir: args[1], Nodes: args[2:], Log: os.Stdout})
}

func servePolicies(ctx context.Context, _ cluster.Site, args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("policies takes a kubeconfig, a mode and nodes")
	}
	mode, err := enforce.ParseMode(args[1])
	if err != nil {
		return err
	}
	return enforce.Serve(ctx, enforce.Options{Kubeconfig: args[0], Default: mode, Nodes: args[2:], Log: os.Stdout})
}

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
