//go:build linux

package server

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/probe"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/supervise"
)

const usage = `usage:
  sandbox install DIR…   put this program into DIR/bin and make DIR/run, of each
  sandbox serve [flags]  run commands for clients of the socket
`

// Main runs the program. The arguments do not contain its name.
func Main(args []string, stderr io.Writer) int {
	err := run(args, stderr)
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, supervise.ErrKilled):
		return 1 // the server knows
	default:
		fmt.Fprintf(stderr, "sandbox: %v\n", err)
		return 1
	}
}

func run(args []string, stderr io.Writer) error {
	mode := ""
	if len(args) > 0 {
		mode, args = args[0], args[1:]
	}
	switch {
	case mode == "serve":
		o, err := parse(args, os.Environ(), stderr)
		if err != nil {
			return err
		}
		return serve(o, stderr)
	case mode == "install" && len(args) > 0:
		return installAll(args)
	case mode == "supervise" && len(args) == 0:
		return supervise.Main() //nolint:wrapcheck // it is complete
	case mode == "probe" && len(args) == 0:
		return serveProbe(os.Stdin, os.Stdout)
	}
	fmt.Fprint(stderr, usage)
	return fmt.Errorf("%q is not a command of this program", mode)
}

// serveProbe is the confined process that makes the attempts of the probe.
func serveProbe(question io.Reader, answer io.Writer) error {
	var t probe.Targets
	if err := json.NewDecoder(question).Decode(&t); err != nil {
		return fmt.Errorf("reading what to try: %w", err)
	}
	if err := json.NewEncoder(answer).Encode(probe.Run(t)); err != nil {
		return fmt.Errorf("reporting the result: %w", err)
	}
	return nil
}

// Defaults of the flags.
const (
	DefaultSocket    = "/deckhand/sandbox/run/exec.sock"
	DefaultProtect   = "/deckhand"
	DefaultWorkspace = "/workspace"
	DefaultHome      = "/home/agent"
	DefaultTemp      = "/tmp"
)

// ProxySocket is the name of the egress proxy's socket, in the directory of Socket.
const ProxySocket = "proxy.sock"

// Options are the flags of the server.
type Options struct {
	Socket    string // where the server listens
	Protect   string // commands cannot change files below
	Workspace string // working directory of commands
	Home      string // HOME of commands
	Temp      string // TMPDIR of commands
	Open      bool   // no confinement and no proxy
	Required  bool   // fail if the kernel does not confine commands
	Private   bool   // commands use nothing of the machine but what they need; fail if the kernel cannot

	Environ []string // of the image, with the variables of Kubernetes
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
	set.BoolVar(&o.Private, "private", false, "for a machine that is not a container: commands read and change the workspace, home and temp, read the directories of the system, and reach only the proxy; serve nothing where the kernel does not confine them so")
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
