package networkcheck

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// answerTimeout bounds a connection to the open port.
	answerTimeout = 2 * time.Second
	// maxAnswers is how many connections to the open port are served at once. Any pod of the
	// cluster may open them.
	maxAnswers = 256
)

// A Server listens on the open port and on the closed one.
type Server struct {
	open, closed net.Listener
	process      string
	// dial connects to the closed port.
	dial func(ctx context.Context, address string) (net.Conn, error)
	// lost counts the connections that the kernel has lost.
	lost func() uint64
	now  func() time.Time
	// sources bounds the connections of each client.
	sources sources
}

// Listen listens on the open port, and on the next one, at all addresses of this machine.
func Listen(port int32, now func() time.Time) (*Server, error) {
	var l net.ListenConfig
	open, err := l.Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, fmt.Errorf("listening on the open port: %w", err)
	}
	closed, err := l.Listen(context.Background(), "tcp", fmt.Sprintf(":%d", port+1))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("listening on the closed port: %w", err), open.Close())
	}
	return newServer(open, closed, now), nil
}

func newServer(open, closed net.Listener, now func() time.Time) *Server {
	return &Server{open: open, closed: closed, process: rand.Text(), dial: dialTCP, lost: lostConnections, now: now}
}

var errAddress = errors.New("write a host and a port below 65535, for example deckhand-check.deckhand-system.svc:20471")

// PortOf returns the open port of an address of the form host:port. The closed port is the next.
func PortOf(address string) (int32, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return 0, fmt.Errorf("%w: %w", err, errAddress)
	}
	port, err := strconv.ParseUint(text, 10, 16)
	if err != nil || host == "" || port == 0 || port == lastPort {
		return 0, fmt.Errorf("address %q: %w", address, errAddress)
	}
	return int32(port), nil
}

const (
	firstHighPort = 1024
	lastPort      = 65535
)

// NeedLeaderElection returns false: every replica of the operator listens.
func (*Server) NeedLeaderElection() bool { return false }

// Start serves until the context ends.
func (s *Server) Start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		_ = s.open.Close()   // ends the loops below
		_ = s.closed.Close() // as above
	})
	defer stop()
	go s.acceptClosed(ctx)
	room := make(chan struct{}, maxAnswers)
	for {
		room <- struct{}{}
		conn, err := accept(ctx, s.open)
		if err != nil {
			return nil // the listener was closed, because the context has ended
		}
		go func() {
			defer func() { <-room }()
			defer conn.Close()
			if source := sourceOf(conn); s.sources.enter(source) {
				defer s.sources.leave(source)
				s.serve(ctx, conn)
			}
		}()
	}
}

// acceptPause is the wait after accept has failed, for example because there are no free file
// descriptors.
const acceptPause = 100 * time.Millisecond

// accept returns the next connection. It fails only once the listener is closed, or the
// context has ended.
func accept(ctx context.Context, l net.Listener) (net.Conn, error) {
	for {
		conn, err := l.Accept()
		if err == nil || errors.Is(err, net.ErrClosed) {
			return conn, err //nolint:wrapcheck // it is only compared
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(acceptPause):
		}
	}
}

// acceptClosed accepts connections to the closed port and closes them: the connection alone shows that the port is open
// to the pod.
func (s *Server) acceptClosed(ctx context.Context) {
	for {
		conn, err := accept(ctx, s.closed)
		if err != nil {
			return
		}
		_ = conn.Close() // nothing was sent
	}
}

// serve answers one question.
func (s *Server) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	_ = conn.SetDeadline(s.now().Add(answerTimeout)) // only a closed connection has none
	var q question
	if err := receive(conn, &q); err != nil || q.Nonce == "" {
		return // it does not ask
	}
	a := answer{Nonce: q.Nonce, Process: s.process, Closed: portOf(s.closed.Addr()), Lost: s.lost()}
	if err := s.tryClosed(ctx, conn); err != nil {
		a.Problem = err.Error()
	}
	_ = send(conn, a) // a client that is gone needs no answer
}

// tryClosed connects to the closed port at the address of a connection to the open port. No
// policy applies to connections of a pod to itself.
func (s *Server) tryClosed(ctx context.Context, conn net.Conn) error {
	host, _, err := net.SplitHostPort(conn.LocalAddr().String())
	if err != nil {
		return fmt.Errorf("finding the address of %s: %w", conn.LocalAddr(), err)
	}
	own, err := s.dial(ctx, net.JoinHostPort(host, strconv.Itoa(portOf(s.closed.Addr()))))
	if err != nil {
		return err
	}
	_ = own.Close() // nothing was sent
	return nil
}

func portOf(a net.Addr) int {
	if tcp, is := a.(*net.TCPAddr); is {
		return tcp.Port
	}
	return 0
}

func dialTCP(ctx context.Context, address string) (net.Conn, error) {
	return (&net.Dialer{}).DialContext(ctx, "tcp", address) //nolint:wrapcheck // it names the address
}

// maxOfSource is how many connections of one address are served in parallel, so that a pod with many idle connections
// does not block other pods.
const maxOfSource = 32

// sources counts the connections that are served, by the address of the client.
type sources struct {
	mu     sync.Mutex
	counts map[string]int
}

// enter reports whether another connection of an address may be served. If so, leave ends it.
func (s *sources) enter(source string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[source] >= maxOfSource {
		return false
	}
	if s.counts == nil {
		s.counts = map[string]int{}
	}
	s.counts[source]++
	return true
}

func (s *sources) leave(source string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts[source]--; s.counts[source] == 0 {
		delete(s.counts, source)
	}
}

func sourceOf(conn net.Conn) string {
	host, _, _ := net.SplitHostPort(conn.RemoteAddr().String()) // "" is a source too
	return host
}

// lostConnections returns how many connections to listeners of this network namespace the kernel has dropped so far; 0
// if the kernel does not report it.
func lostConnections() uint64 {
	data, _ := os.ReadFile("/proc/net/netstat") // as above
	return parseLost(string(data))
}

// parseLost sums the kernel's counters of connections that a listener could not accept. The file has pairs of lines:
// names and then values.
func parseLost(text string) (sum uint64) {
	var names []string
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] != "TcpExt:" {
			continue
		}
		if names == nil {
			names = fields
			continue
		}
		for _, name := range []string{"ListenOverflows", "ListenDrops", "TCPReqQFullDrop"} {
			if i := slices.Index(names, name); i > 0 && i < len(fields) {
				n, _ := strconv.ParseUint(fields[i], 10, 64) // the kernel writes numbers
				sum += n
			}
		}
	}
	return sum
}
