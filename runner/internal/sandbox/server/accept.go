//go:build linux

package server

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/proc"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/supervise"
)

const (
	// requestTimeout is how long a client may take to send its request.
	requestTimeout = 10 * time.Second
	// maxConnections bounds connections before they are passed to a supervisor, and
	// sessions.
	maxConnections = 64
	// maxAcceptFailure is how long the server tries again after accept has failed, for
	// example because it has no free file descriptors.
	maxAcceptFailure = 5 * time.Second
)

// accept accepts connections until the listener is closed. If it fails for
// maxAcceptFailure the server ends, because only a restart may help.
func (s *server) accept(l *net.UnixListener) error {
	room := make(chan struct{}, maxConnections)
	var failingSince time.Time // since when accept fails; zero if it does not
	for {
		room <- struct{}{}
		conn, err := l.AcceptUnix()
		if err == nil {
			failingSince = time.Time{}
			go func() {
				defer func() { <-room }()
				defer conn.Close()
				s.serveConn(conn)
			}()
			continue
		}
		<-room
		if s.ending.Load() {
			return nil
		}
		if failingSince.IsZero() {
			failingSince = s.now()
		}
		if errors.Is(err, net.ErrClosed) || s.now().Sub(failingSince) >= maxAcceptFailure {
			return fmt.Errorf("the sandbox cannot accept connections: %w. It ends so that its container is started again", err)
		}
		<-time.After(requestTimeout / 100) // file descriptors may become free
	}
}

// serveConn handles the request of a connection.
func (s *server) serveConn(conn *net.UnixConn) {
	if !isFromOutside(conn) {
		return
	}
	c := frame.New(conn)
	c.SetTimeout(requestTimeout)
	first, err := c.Receive()
	if err != nil {
		return
	}
	switch first.Kind {
	case frame.Session:
		c.SetTimeout(0)
		if s.sessions.open(c) == nil {
			s.sessions.waitForEnd(c)
		}
	case frame.Describe:
		c.SetTimeout(0)
		<-s.probed
		c.SetTimeout(requestTimeout)
		_ = c.SendMessage(frame.Description, s.describe()) // a client that is gone needs no answer
	case frame.Start:
		if err := s.startCommand(conn, c, first); err != nil {
			_ = c.SendMessage(frame.Refused, refusedError(err)) // as above
		}
	default: // a violation of the protocol
	}
}

// isFromOutside reports whether a peer is not a descendant of this process. The
// runner is in another PID namespace, so its PID is 0. Commands may not use this
// socket.
func isFromOutside(conn *net.UnixConn) bool {
	raw, err := conn.SyscallConn()
	if err != nil {
		return false
	}
	var peer *unix.Ucred
	var failed error
	err = raw.Control(func(fd uintptr) {
		peer, failed = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil || failed != nil {
		return false
	}
	return peer.Pid == 0 || !proc.Descends(int(peer.Pid), os.Getpid())
}

func refusedError(err error) *sandbox.RefusedError {
	if refused, ok := errors.AsType[*sandbox.RefusedError](err); ok {
		return refused
	}
	return sandbox.StartFailure(err)
}

// startCommand starts a supervisor and passes it the connection and the command.
func (s *server) startCommand(conn *net.UnixConn, c *frame.Conn, first frame.Frame) error {
	o := supervise.Assignment{OOMKills: s.memory.OOMKills()}
	if err := c.Message(first, &o.Command); err != nil {
		return fmt.Errorf("reading the command: %w", err)
	}
	if err := o.Command.Check(); err != nil {
		return err //nolint:wrapcheck // it is complete
	}
	s.setDefaults(&o)
	runner, err := conn.File()
	if err != nil {
		return fmt.Errorf("handing the connection over: %w", err)
	}
	defer runner.Close()
	own, other, err := socketPair()
	if err != nil {
		return err
	}
	defer other.Close()
	one := &command{
		Killed: sandbox.Killed{ID: o.Command.ID, Args0: o.Command.Args[0]},
		server: own, processes: o.Command.Limits.Processes, ended: make(chan struct{}),
	}
	err = retryWithoutProcesses(func() error {
		return s.commands.add(one, func() (int, error) {
			return s.launcher.launch("supervise", []*os.File{s.null, os.Stderr, os.Stderr, runner, other})
		})
	})
	if err != nil {
		one.disconnect()
		return err
	}
	one.score = raiseOOMScore(one.pid) // before the supervisor starts the command
	own.SetTimeout(requestTimeout)
	if err := own.SendMessage(frame.Start, o); err != nil {
		one.disconnect() // the supervisor ends without an assignment, and the runner loses the connection
	}
	own.SetTimeout(0)
	go one.serveSupervisor(s.commands)
	return nil
}

// Delays between tries of a launch while the container has too many processes. Together they are two seconds, in which
// the watch ends a command with too many.
const (
	launchRetries  = 20
	launchInterval = 100 * time.Millisecond
)

// retryWithoutProcesses repeats a launch that fails because there are too many processes.
func retryWithoutProcesses(launch func() error) error {
	for n := 0; ; n++ {
		err := launch()
		if !errors.Is(err, unix.EAGAIN) || n == launchRetries {
			return err
		}
		<-time.After(launchInterval)
	}
}

// setDefaults sets the fields of a command that the runner left empty.
func (s *server) setDefaults(o *supervise.Assignment) {
	c := &o.Command
	if c.Dir == "" {
		c.Dir = s.options.Workspace
	}
	if c.Limits.Processes == 0 {
		c.Limits.Processes = sandbox.DefaultProcesses
	}
	o.Env = commandEnvironment(s.env, c.ID, c.Env)
	c.Env = nil
}

// socketPair makes a connection between this process and a child that it starts.
func socketPair() (*frame.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("making a connection: %w", err)
	}
	own, other := os.NewFile(uintptr(fds[0]), "own"), os.NewFile(uintptr(fds[1]), "other")
	defer own.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		_ = other.Close() // not used
		return nil, nil, fmt.Errorf("making a connection: %w", err)
	}
	return frame.New(conn), other, nil
}

// describe returns the description of this sandbox.
func (s *server) describe() sandbox.Description {
	return sandbox.Description{
		Shell: s.findProgram("bash", "sh"), Python: s.findProgram("python3", "python"),
		Killed: s.sessions.previouslyKilled(), Confinement: s.confinement,
	}
}

// findProgram returns the path of the first of these programs that is in PATH.
func (s *server) findProgram(names ...string) string {
	for _, name := range names {
		for dir := range strings.SplitSeq(lookup(s.env, "PATH"), ":") {
			file := dir + "/" + name
			if path, err := exec.LookPath(file); err == nil && strings.HasPrefix(path, "/") {
				return path
			}
		}
	}
	return ""
}

// standardPath is the default PATH.
const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// Variables that Kubernetes adds to the environment of every container: addresses
// of Services, in two forms. Commands do not get them.
var (
	serviceName = regexp.MustCompile(`^(KUBERNETES_.*|DECKHAND_.*|[A-Z0-9_]+_SERVICE_HOST|[A-Z0-9_]+_SERVICE_PORT(_.*)?|[A-Z0-9_]+_PORT_[0-9]+_(TCP|UDP|SCTP)(_.*)?)$`)
	servicePort = regexp.MustCompile(`^[A-Z0-9_]+_PORT=(tcp|udp|sctp)://`)
)

// baseEnvironment returns the environment of all commands. proxy may be empty.
func baseEnvironment(o Options, proxy string) []string {
	env := []string{"PATH=" + standardPath}
	for _, entry := range o.Environ {
		name, _, ok := strings.Cut(entry, "=")
		if ok && !serviceName.MatchString(name) && !servicePort.MatchString(entry) {
			env = append(env, entry)
		}
	}
	env = append(withUser(env, os.Getuid(), passwdFile), "HOME="+o.Home, "TMPDIR="+o.Temp)
	if !o.Open {
		env = append(trustWorkspace(o.Workspace), env...)
	}
	if proxy == "" {
		return env
	}
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		env = append(env, name+"=http://"+proxy)
	}
	for _, name := range []string{"NO_PROXY", "no_proxy"} {
		env = append(env, name+"=localhost,127.0.0.1,::1")
	}
	return env
}

// The names of the user of commands, where the image and sandbox.env do not set them.
const (
	passwdFile  = "/etc/passwd"
	defaultUser = "agent"
	// maxPasswd is how much of the file is read, in bytes.
	maxPasswd = 1 << 20
)

// withUser returns an environment with USER and LOGNAME, as a login sets them, unless they are set. The image may not
// know the user: then programs that look up its name would fail without these variables.
func withUser(environ []string, uid int, passwd string) []string {
	user, login := lastOf(environ, "USER"), lastOf(environ, "LOGNAME")
	name := cmp.Or(user, login, userName(uid, passwd), defaultUser)
	return append(environ, "USER="+cmp.Or(user, name), "LOGNAME="+cmp.Or(login, name))
}

// lastOf returns the last value of a variable.
func lastOf(environ []string, name string) (value string) {
	for _, entry := range environ {
		if v, ok := strings.CutPrefix(entry, name+"="); ok {
			value = v
		}
	}
	return value
}

// userName returns the name of a user in the image; empty: it has none.
func userName(uid int, passwd string) string {
	f, err := os.Open(passwd)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(io.LimitReader(f, maxPasswd))
	for lines.Scan() {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) > 2 && fields[2] == strconv.Itoa(uid) && !strings.ContainsFunc(fields[0], unicode.IsControl) {
			return fields[0]
		}
	}
	return ""
}

// trustWorkspace lets git work in the workspace, whose directory root owns if it is
// a volume. It is not set for an open sandbox, whose container may hold secrets:
// commands can write the configuration of a repository, which runs programs.
func trustWorkspace(workspace string) []string {
	return []string{"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=safe.directory", "GIT_CONFIG_VALUE_0=" + workspace}
}

// commandEnvironment returns the complete environment of one command. The last value of
// a variable is used.
func commandEnvironment(base []string, id string, wanted map[string]string) []string {
	last := map[string]string{}
	var order []string
	set := func(name, value string) {
		if _, again := last[name]; !again {
			order = append(order, name)
		}
		last[name] = value
	}
	for _, entry := range base {
		name, value, _ := strings.Cut(entry, "=")
		set(name, value)
	}
	if id != "" {
		set("DECKHAND_REQUEST", id)
	}
	for name, value := range wanted {
		set(name, value)
	}
	env := make([]string, len(order))
	for i, name := range order {
		env[i] = name + "=" + last[name]
	}
	return env
}
