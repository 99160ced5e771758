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
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/cgroup"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/confine"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
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

// system are the directories of programs and their settings, and /proc: Landlock denies access to entries of processes
// that are not confined.
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

// listen creates the socket and replaces the socket of an earlier process.
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

// maxKilled bounds the killed commands in a description.
const maxKilled = 64

// sessions holds the session of the runner. There is one at a time; when it ends
// all commands are killed.
type sessions struct {
	commands *commands

	handover sync.Mutex // held while a session ends or is replaced

	mu       sync.Mutex
	conn     *frame.Conn // nil if there is none
	killed   []sandbox.Killed
	pressure pressure
}

// open makes a connection the session. It ends the previous session first, with its
// commands: a new runner replaces an old one.
func (s *sessions) open(conn *frame.Conn) error {
	s.handover.Lock()
	defer s.handover.Unlock()
	s.mu.Lock()
	before := s.conn
	s.mu.Unlock()
	if before != nil {
		s.end(before)
	}
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	s.commands.setOpen(true)
	return conn.Send(frame.Welcome, nil)
}

// waitForEnd waits until a session ends and kills its commands.
func (s *sessions) waitForEnd(conn *frame.Conn) {
	_, _ = conn.Receive() // a session sends no frames: it has ended, or violates the protocol
	s.handover.Lock()
	defer s.handover.Unlock()
	s.end(conn)
}

// end ends a session and its commands, if it is the current one.
func (s *sessions) end(conn *frame.Conn) {
	_ = conn.Close() // may be closed already
	s.mu.Lock()
	current := s.conn == conn
	s.mu.Unlock()
	if !current {
		return
	}
	s.commands.setOpen(false)
	killed := s.commands.endAll(endTimeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = nil
	s.killed = killed[:min(len(killed), maxKilled)]
}

// close closes the connection of the session.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // may be closed already
	}
}

// sendEnding informs the runner why the sandbox ends itself.
func (s *sessions) sendEnding(why sandbox.Ending) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn == nil {
		return
	}
	_ = conn.SetWriteDeadline(clock.Now().Add(time.Second)) // fails only on a connection that fails anyway
	_ = conn.Send(frame.Ending, []byte{byte(why)})          // without it the runner reports a restart
}

// previouslyKilled returns the commands that were killed with the previous session.
func (s *sessions) previouslyKilled() []sandbox.Killed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}

// setPressure informs the runner when the memory pressure changes, so that it knows
// the cause if the sandbox is OOM-killed.
func (s *sessions) setPressure(now pressure) {
	s.mu.Lock()
	conn, changed := s.conn, s.pressure != now
	s.pressure = now
	s.mu.Unlock()
	if conn != nil && changed {
		_ = conn.Send(frame.Memory, []byte{byte(now)}) // waitForEnd notices the end of the session
	}
}

// A pressure is the memory pressure that is sent to the runner.
type pressure byte

const (
	pressureNormal pressure = iota
	pressureHigh            // nearly all memory is used
)
