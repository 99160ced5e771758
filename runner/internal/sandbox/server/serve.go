//go:build linux

package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/cgroup"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/confine"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// terminationGrace is how long supervisors have when the container is terminated, so
// that the server ends within a second.
const terminationGrace = 300 * time.Millisecond

// A server is the first process of a sandbox.
type server struct {
	options  Options
	launcher *launcher
	commands *commands
	sessions *sessions
	memory   cgroup.Memory
	env      []string
	null     *os.File
	now      func() time.Time
	stderr   io.Writer
	ending   atomic.Bool // SIGTERM was received

	probed      chan struct{} // closed when confinement is set
	confinement sandbox.Confinement
}

// serve runs a sandbox until SIGTERM.
func serve(o Options, stderr io.Writer) error {
	if err := prepareProcess(); err != nil {
		return err
	}
	ends, told := make(chan os.Signal, 1), make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGCHLD)
	signal.Notify(told, syscall.SIGTERM, syscall.SIGINT)
	s, err := newServer(o, stderr)
	if err != nil {
		return err
	}
	listener, err := listen(o.Socket)
	if err != nil {
		return err
	}
	go s.commands.reap(ends)
	go (&watch{commands: s.commands, sessions: s.sessions, memory: s.memory}).run()
	go func() {
		s.confinement = s.probeConfinement()
		close(s.probed)
	}()
	failed := make(chan error, 1)
	go func() {
		select {
		case <-told:
		case why := <-s.commands.failed:
			s.sessions.sendEnding(why)
			failed <- fmt.Errorf("%w: %s. It ends so that its container is started again", errEnding, why)
		}
		s.ending.Store(true)
		_ = listener.Close() // ends accept
	}()
	err = s.accept(listener)
	select {
	case err = <-failed:
		s.sessions.close()
		if os.Getpid() == 1 {
			return err // the kernel kills all processes of the container, and at once
		}
	default:
	}
	s.commands.setOpen(false)
	s.sessions.close() // first, so that the runner reports the loss of the sandbox
	s.commands.endAll(terminationGrace)
	return err
}

// errEnding means that the server ends itself because it cannot control processes.
var errEnding = errors.New("the sandbox cannot go on")

// prepareProcess makes this process a subreaper that cannot be dumped.
func prepareProcess() error {
	unix.Umask(0o002) // the runner has the same group and can change what commands write
	proc.ReserveThreads(proc.ServerThreads)
	if err := errors.Join(
		unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0),
		unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), // needed if it is not PID 1, as in tests
		unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}),
	); err != nil {
		return fmt.Errorf("preparing to serve: %w", err)
	}
	return nil
}

func newServer(o Options, stderr io.Writer) (*server, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("preparing to serve: %w", err)
	}
	s := &server{
		options: o, commands: newCommands(), memory: cgroup.Find(cgroup.Root),
		null: null, now: clock.Now, stderr: stderr, probed: make(chan struct{}),
	}
	s.sessions = &sessions{commands: s.commands}
	proxy := ""
	var confineThread func() confine.Applied
	if !o.Open {
		proxy, err = s.openProxy()
		if err != nil {
			return nil, err
		}
		confineThread = o.confine
	}
	s.env = baseEnvironment(o, proxy)
	s.launcher = newLauncher(confineThread)
	a := s.launcher.applied
	if a.Lowered != nil {
		s.log("commands are confined by version %d of Landlock: %v", a.ABI, a.Lowered)
	}
	if err := errors.Join(a.Privileges, a.Filter, a.Landlock); err != nil {
		s.log("this kernel does not confine commands as it should: %v", err)
		if o.Required || o.Private {
			return nil, fmt.Errorf("confining commands, which is required: %w", err)
		}
	}
	switch {
	case a.Connects != nil:
		go s.serveConnects(a.Connects, proxy)
	case a.Offline != nil:
		s.logOffline(a.Offline)
	}
	return s, nil
}

// system are the directories of programs and their settings, and what the kernel says of
// processes: Landlock denies to look into those that are not confined.
var system = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc", "/opt", "/nix", "/proc", "/sys"}

// confine confines the thread that starts commands.
func (o Options) confine() confine.Applied {
	if !o.Private {
		return confine.Thread(o.Protect)
	}
	p := confine.Private{Writable: []string{o.Workspace, o.Home, o.Temp}, Readable: system}
	if self, err := os.Executable(); err == nil { // it starts itself to supervise commands
		p.Readable = append([]string{self}, system...)
	}
	return confine.PrivateThread(p)
}

// serveConnects lets private commands connect to the proxy, and to nothing else.
func (s *server) serveConnects(c *confine.Connects, proxy string) {
	only, err := netip.ParseAddrPort(proxy)
	if err == nil {
		err = c.Serve(only)
	}
	s.logOffline(err)
}

func (s *server) logOffline(why error) {
	s.log("commands have no network, because they cannot be limited to the proxy: %v", why)
}

// openProxy listens on loopback for the tunnel to the runner.
func (s *server) openProxy() (string, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp4", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listening for the proxy: %w", err)
	}
	go newTunnel(l, filepath.Join(filepath.Dir(s.options.Socket), ProxySocket), s.now).serve()
	return l.Addr().String(), nil
}

// listen creates the socket and replaces one that an earlier process has left.
func listen(socket string) (*net.UnixListener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the socket of the sandbox before: %w", err)
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listening for the runner: %w", err)
	}
	if err := os.Chmod(socket, 0o660); err != nil {
		return nil, fmt.Errorf("listening for the runner: %w", err)
	}
	return l, nil
}

// log writes a line to the log of the container.
func (s *server) log(format string, args ...any) {
	fmt.Fprintf(s.stderr, "sandbox: "+format+"\n", args...)
}
