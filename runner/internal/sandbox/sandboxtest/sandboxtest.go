//go:build linux

package sandboxtest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/cgrouptest"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
)

// A Server is a running sandbox.
type Server struct {
	// Dir is a temporary directory that contains the others.
	Dir string
	// Workspace is the working directory of commands.
	Workspace string
	// Home is the HOME of commands.
	Home string
	// Socket is where the server listens.
	Socket string
	// Process is the first process, or its wrapper in a container.
	Process *os.Process

	settings settings
	ended    chan struct{}
	log      *bytes.Buffer
}

// An Option changes how a sandbox is started.
type Option func(*settings)

type settings struct {
	open bool
	args []string
	env  []string
	user uint32
	wrap []string
	// landlock is the highest version of Landlock to use; empty: the kernel's.
	landlock string
}

// Confined confines the sandbox as in a pod, as far as the kernel of this machine
// can. It runs as the user of a pod, so root must run the test.
func Confined() Option {
	return func(s *settings) { s.open, s.user = false, User }
}

// Private confines the sandbox as on a machine that is not a container.
func Private() Option {
	return func(s *settings) { s.open, s.user, s.args = false, User, []string{"-private"} }
}

// Landlock confines the sandbox as if the kernel had this version of Landlock; 0: none.
func Landlock(abi int) Option {
	return func(s *settings) { s.landlock = strconv.Itoa(abi) }
}

// landlockOfSuite is the environment variable with the version of Landlock for all tests that do not choose one.
const landlockOfSuite = "DECKHAND_TEST_LANDLOCK"

// Environ adds to the environment of the image.
func Environ(entries ...string) Option {
	return func(s *settings) { s.env = append(s.env, entries...) }
}

// Contained gives the sandbox a PID namespace and a control group, as a container has, that
// bounds its processes and its memory in bytes and gives it one CPU, so that a test cannot
// harm this machine. Root must run the test.
func Contained(t testing.TB, processes int, memory int64) Option {
	t.Helper()
	id := strconv.Itoa(User)
	wrap := cgrouptest.New(t, cgrouptest.Limits{Processes: processes, Memory: memory, CPUs: 1}).Join(
		"unshare", "--pid", "--fork", "--mount-proc", "setpriv", "--reuid="+id, "--regid="+id, "--clear-groups")
	return func(s *settings) { s.user, s.wrap = User, wrap }
}

// User is the user of all containers of an agent.
const User = 65532

// waitTimeout bounds waits of a test that usually take milliseconds.
const waitTimeout = 20 * time.Second

// programs are the built programs, by their version of Landlock.
var programs sync.Map

// programFor builds the program for a version of Landlock, once.
func programFor(landlock string) (string, error) {
	build, _ := programs.LoadOrStore(landlock, sync.OnceValues(func() (string, error) { return program(landlock) }))
	return build.(func() (string, error))()
}

// limitOfLandlock is the variable of the program that only the linker sets.
const limitOfLandlock = "github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/confine.limit"

// program builds cmd/sandbox into one file for each checkout and version of Landlock: two
// checkouts do not run each other's program, and go build relinks it only after a change.
func program(landlock string) (string, error) {
	module, err := exec.CommandContext(context.Background(), "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("finding the checkout: %w", err)
	}
	checkout := sha256.Sum256(module)
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("deckhand-sandboxtest-%d-%x", os.Getuid(), checkout[:6]))
	if err := errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o755)); err != nil {
		return "", err
	}
	// Tests of other packages build it at the same time.
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close() // which unlocks it
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("locking %s: %w", lock.Name(), err)
	}
	file := filepath.Join(dir, "sandbox"+landlock)
	// Without version control stamps, which would make each commit a change.
	build := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-ldflags=-X="+limitOfLandlock+"="+landlock, "-o", file, "github.com/deckhand-dev/deckhand/cmd/sandbox")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=readonly -trimpath")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return file, os.Chmod(file, 0o755)
}

// Program returns the path of the program.
func Program(t testing.TB) string {
	t.Helper()
	return build(t, "")
}

func build(t testing.TB, landlock string) string {
	t.Helper()
	file, err := programFor(landlock)
	if err != nil {
		t.Fatalf("building the sandbox program: %v", err)
	}
	return file
}

// New starts a sandbox without confinement and returns a client of it. Both end
// with the test.
func New(t testing.TB) (*sandbox.Client, *Server) {
	t.Helper()
	s := Start(t)
	c := sandbox.Dial(s.Socket)
	t.Cleanup(func() { _ = c.Close() })
	return c, s
}

// Start starts a sandbox, which ends with the test.
func Start(t testing.TB, options ...Option) *Server {
	t.Helper()
	o := settings{open: true, landlock: os.Getenv(landlockOfSuite)}
	for _, option := range options {
		option(&o)
	}
	s := makeDirs(t, o)
	s.settings = o
	s.Restart(t)
	return s
}

// makeDirs creates the directories.
func makeDirs(t testing.TB, o settings) *Server {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox") //nolint:usetesting // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &Server{
		Dir: dir, Workspace: filepath.Join(dir, "workspace"), Home: filepath.Join(dir, "home"),
		Socket: filepath.Join(dir, "deckhand", "run", "exec.sock"),
	}
	for _, d := range []string{s.Dir, s.Workspace, s.Home, filepath.Join(dir, "tmp"), filepath.Join(dir, "deckhand"), filepath.Dir(s.Socket)} {
		if err := errors.Join(os.MkdirAll(d, 0o755), os.Chmod(d, 0o755)); err != nil {
			t.Fatal(err)
		}
		if o.user == 0 {
			continue
		}
		if err := os.Chown(d, int(o.user), int(o.user)); err != nil {
			t.Skipf("only root can run a sandbox as another user: %v", err)
		}
	}
	return s
}

// Restart starts the first process and waits until it listens.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	o := s.settings
	args := append(append([]string{}, o.wrap...), build(t, o.landlock), "serve", "-socket", s.Socket,
		"-protect", filepath.Dir(filepath.Dir(s.Socket)), "-workspace", s.Workspace, "-home", s.Home, "-temp", filepath.Join(s.Dir, "tmp"))
	if o.open {
		args = append(args, "-open")
	}
	args = append(args, o.args...)
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // ends below
	cmd.Env = append(os.Environ(), o.env...)
	log := &bytes.Buffer{}
	cmd.Stderr = log
	cmd.WaitDelay = waitTimeout // its children may hold stderr open
	if o.user != 0 && len(o.wrap) == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: o.user, Gid: o.user}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	s.Process, s.ended, s.log = cmd.Process, ended, log
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		s.end(t, cmd.Process, ended)
		if t.Failed() && log.Len() > 0 {
			t.Logf("the sandbox's log:\n%s", log)
		}
	})
	for deadline := time.Now().Add(waitTimeout); ; time.Sleep(5 * time.Millisecond) {
		if conn, err := (&net.Dialer{}).DialContext(t.Context(), "unix", s.Socket); err == nil {
			_ = conn.Close() // it listens
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the sandbox does not listen")
		}
	}
}

// end ends the first process and waits for it.
func (s *Server) end(t testing.TB, p *os.Process, ended <-chan struct{}) {
	t.Helper()
	_ = syscall.Kill(s.FirstPID(), syscall.SIGTERM)
	select {
	case <-ended:
	case <-time.After(waitTimeout):
		t.Errorf("the sandbox does not end")
		_ = syscall.Kill(s.FirstPID(), syscall.SIGKILL)
		_ = p.Kill()
		<-ended
	}
}

// FirstPID returns the PID of the first process.
func (s *Server) FirstPID() int {
	if len(s.settings.wrap) > 0 {
		if t, err := proc.ReadTable(); err == nil && len(t.Children(s.Process.Pid)) > 0 {
			return t.Children(s.Process.Pid)[0].ID
		}
	}
	return s.Process.Pid
}

// Terminate sends SIGTERM, as the kubelet does, and waits until the sandbox ended.
func (s *Server) Terminate(t testing.TB) {
	t.Helper()
	s.end(t, s.Process, s.ended)
}

// WaitEnded waits until the first process has exited, and returns its log.
func (s *Server) WaitEnded(t testing.TB) string {
	t.Helper()
	select {
	case <-s.ended:
		return s.log.String()
	case <-time.After(waitTimeout):
		t.Fatal("the sandbox does not end")
		return ""
	}
}
