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
	"strconv"
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

// installAll installs into each directory, until one fails.
func installAll(dirs []string) error {
	for _, dir := range dirs {
		if err := install(dir); err != nil {
			return err
		}
	}
	return nil
}

// install copies this program to bin below a directory and makes run for its
// socket. It is idempotent.
func install(dir string) error {
	bin, run := filepath.Join(dir, "bin"), filepath.Join(dir, "run")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if err := os.MkdirAll(run, 0o770); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if err := os.Chmod(run, 0o770); err != nil { // independent of the umask
		return fmt.Errorf("installing: %w", err)
	}
	if err := copyProgram(filepath.Join(bin, "sandbox")); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	return nil
}

// copyProgram copies this program atomically.
func copyProgram(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err //nolint:wrapcheck // install does
	}
	defer from.Close()
	half, err := os.CreateTemp(filepath.Dir(to), ".sandbox-*")
	if err != nil {
		return err //nolint:wrapcheck // install does
	}
	defer os.Remove(half.Name()) //nolint:errcheck // exists only after a failure
	_, err = io.Copy(half, from)
	if err == nil {
		err = half.Chmod(0o755)
	}
	if closed := half.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err //nolint:wrapcheck // install does
	}
	return os.Rename(half.Name(), to) //nolint:wrapcheck // install does
}

// oomScoreStep is added to the oom_score_adj of commands, in thousandths of the
// memory, so that the kernel kills them before supervisors and the server.
const oomScoreStep = 100

// An oomScore is the oom_score_adj of a supervisor. Processes inherit it, so it is raised
// until the supervisor has started its command. Commands cannot lower theirs: Landlock
// refuses to write to /proc. The zero value does nothing.
type oomScore struct {
	file io.WriteCloser // nil if the kernel does not let the server write it
	own  int
}

// raiseOOMScore raises the score of a process that has not made itself undumpable yet.
func raiseOOMScore(pid int) oomScore {
	file, err := os.OpenFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid), os.O_RDWR, 0)
	if err != nil {
		return oomScore{} // works without it too
	}
	text, err := io.ReadAll(file)
	own, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || wrong != nil {
		_ = file.Close() // it was only read
		return oomScore{}
	}
	s := oomScore{file: file, own: own}
	s.write(min(own+oomScoreStep, 1000))
	return s
}

// restore sets the score that the process had.
func (s oomScore) restore() {
	if s.file == nil {
		return
	}
	s.write(s.own)
	_ = s.file.Close() // may be closed already
}

func (s oomScore) write(score int) {
	_, _ = s.file.Write([]byte(strconv.Itoa(score))) // the process may have ended
}
