//go:build linux

package server

import (
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
)

// Where a sandbox has what, unless it is told otherwise.
const (
	DefaultSocket    = "/deckhand/sandbox/run/exec.sock"
	DefaultProtect   = "/deckhand"
	DefaultWorkspace = "/workspace"
	DefaultHome      = "/home/agent"
	DefaultTemp      = "/tmp"
)

// ProxySocket is how the runner's egress proxy is called, beside the socket.
const ProxySocket = "proxy.sock"

// Options are what a server is told by its arguments.
type Options struct {
	Socket    string // where it listens
	Protect   string // what commands cannot change anything beneath
	Workspace string // where commands start
	Home      string // HOME of commands
	Temp      string // TMPDIR of commands
	Open      bool   // nothing is confined, and there is no proxy
	Required  bool   // nothing is served where the kernel does not confine

	Environ []string // the image's, with what Kubernetes added
}

// parse reads the arguments of `sandbox serve`.
func parse(args, environ []string, stderr io.Writer) (Options, error) {
	o := Options{Environ: environ}
	set := flag.NewFlagSet("sandbox serve", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&o.Socket, "socket", DefaultSocket, "unix socket to listen on; the runner's proxy is awaited beside it")
	set.StringVar(&o.Protect, "protect", DefaultProtect, "directory beneath which commands change nothing")
	set.StringVar(&o.Workspace, "workspace", DefaultWorkspace, "directory where commands start")
	set.StringVar(&o.Home, "home", DefaultHome, "HOME of commands")
	set.StringVar(&o.Temp, "temp", DefaultTemp, "TMPDIR of commands")
	set.BoolVar(&o.Open, "open", false, "confine nothing: for a container whose commands may have what is in it")
	set.BoolVar(&o.Required, "required", false, "serve nothing where the kernel does not confine commands")
	if err := set.Parse(args); err != nil {
		return o, fmt.Errorf("reading the arguments: %w", err)
	}
	if set.NArg() > 0 {
		return o, fmt.Errorf("reading the arguments: %q is one too many", set.Arg(0))
	}
	for name, path := range map[string]string{"socket": o.Socket, "protect": o.Protect, "workspace": o.Workspace, "home": o.Home, "temp": o.Temp} {
		if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
			return o, fmt.Errorf("reading the arguments: -%s %q is no absolute path", name, path)
		}
	}
	return o, nil
}
