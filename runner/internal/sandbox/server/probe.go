//go:build linux

package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/probe"
)

const (
	// probeTime bounds all attempts together.
	probeTime = 5 * time.Second
	// maxFindings bounds the output of the probe in bytes: confined processes may
	// interfere with it.
	maxFindings = 16 << 10
)

// targets returns what the probe tries: the metadata service, a public address, and the API
// server if its port is low.
func targets(socket string, environ []string) probe.Targets {
	t := probe.Targets{Server: os.Getpid(), Dir: filepath.Dir(socket), Addresses: []string{"169.254.169.254:80", "1.1.1.1:443"}}
	host, port := lookup(environ, "KUBERNETES_SERVICE_HOST"), lookup(environ, "KUBERNETES_SERVICE_PORT")
	if number, err := strconv.Atoi(port); err == nil && number < 1024 && host != "" {
		t.Addresses = append(t.Addresses, net.JoinHostPort(host, port))
	}
	return t
}

// lookup returns the last value of a variable in an environment.
func lookup(environ []string, name string) string {
	for _, entry := range slices.Backward(environ) {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// probeConfinement measures what is enforced. What cannot be measured is
// unenforced.
func (s *server) probeConfinement() sandbox.Confinement {
	nothing := sandbox.Confinement{Process: sandbox.Unenforced, Files: sandbox.Unenforced, Network: sandbox.Unenforced}
	if s.options.Open {
		return nothing
	}
	nothing.LandlockABI = s.launcher.applied.ABI
	findings, err := s.runProbe()
	if err != nil {
		s.log("trying the confinement: %v", err)
		return nothing
	}
	return probe.Judge(findings, s.launcher.applied.ABI)
}

// runProbe runs the probe in a confined process.
func (s *server) runProbe() (probe.Findings, error) {
	var f probe.Findings
	t := targets(s.options.Socket, s.options.Environ)
	file, err := os.CreateTemp(t.Dir, ".bait-*")
	if err != nil {
		return f, fmt.Errorf("creating a file to remove: %w", err)
	}
	defer os.Remove(file.Name()) //nolint:errcheck // the probe may have removed it
	defer file.Close()
	t.ProbeFile = file.Name()
	answer, err := s.startProbe(t)
	if err != nil {
		return f, err
	}
	if err := json.Unmarshal(answer, &f); err != nil {
		return f, fmt.Errorf("reading the result: %w", err)
	}
	return f, nil
}

// startProbe starts the process, sends it the targets, and reads its findings.
func (s *server) startProbe(t probe.Targets) ([]byte, error) {
	question, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("writing what to try: %w", err)
	}
	input, tell, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer input.Close()
	defer tell.Close()
	hear, output, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("making a pipe: %w", err)
	}
	defer hear.Close()
	one := &command{ended: make(chan struct{})}
	err = s.commands.add(one, func() (int, error) {
		return s.launcher.launch("probe", []*os.File{input, output, os.Stderr})
	})
	_ = output.Close() // the process has its own
	if err != nil {
		return nil, err
	}
	_, _ = tell.Write(question) // it fits in the pipe; a process that does not read it does not answer
	_ = tell.Close()            // as above
	_ = hear.SetReadDeadline(s.now().Add(probeTime))
	answer, err := io.ReadAll(io.LimitReader(hear, maxFindings))
	if err != nil {
		return nil, fmt.Errorf("waiting for the result: %w", err)
	}
	return answer, nil
}

const (
	// maxTunnels bounds concurrent connections.
	maxTunnels = 64
	// dialTimeout is how long the runner may take to accept a connection.
	dialTimeout = 5 * time.Second
	// maxRequest bounds what is read of a request while no proxy is served, in bytes.
	maxRequest = 64 << 10
)

// unavailableAnswer is the answer while the runner serves no proxy.
const unavailableAnswer = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"The way out of this sandbox is closed: its runner does not serve a proxy at the moment.\n"

// A tunnel copies connections on loopback to the socket of the runner's egress
// proxy, which decides about them.
type tunnel struct {
	listener net.Listener
	socket   string
	slots    chan struct{} // holds a token for each connection
	now      func() time.Time
}

func newTunnel(l net.Listener, socket string, now func() time.Time) *tunnel {
	return &tunnel{listener: l, socket: socket, slots: make(chan struct{}, maxTunnels), now: now}
}

// serve accepts connections until the listener is closed.
func (t *tunnel) serve() {
	for {
		t.slots <- struct{}{}
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { <-t.slots }()
			defer conn.Close()
			t.relay(conn)
		}()
	}
}

// relay copies in both directions until both have ended.
func (t *tunnel) relay(near net.Conn) {
	far, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "unix", t.socket)
	if err != nil {
		t.answerUnavailable(near)
		return
	}
	defer far.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		copyOneWay(near, far)
	}()
	copyOneWay(far, near)
	<-back
}

// answerUnavailable answers while there is no proxy. It reads the request first: if
// the connection is closed with unread data, the client may lose the answer.
func (t *tunnel) answerUnavailable(near net.Conn) {
	_ = near.SetDeadline(t.now().Add(dialTimeout)) // fails only on a connection that fails anyway
	if _, err := io.WriteString(near, unavailableAnswer); err != nil {
		return
	}
	if half, ok := near.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(near, maxRequest)) // not used
	}
}

// copyOneWay copies in one direction and then closes the writing side.
func copyOneWay(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()   // the other direction ends too
		_ = from.Close() // as above
	}
}
