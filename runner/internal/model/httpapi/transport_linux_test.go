package httpapi

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

func TestADeadPathIsFoundWithin20Seconds(t *testing.T) {
	const most = 20 * time.Second
	if ping := deadPath.pingAfter + deadPath.ping; deadPath.tcp > most || ping > most {
		t.Errorf("it is found within %s, and by pings within %s", deadPath.tcp, ping)
	}
	if connected := dialTimeout + transport(deadPath).TLSHandshakeTimeout; connected > most {
		t.Errorf("a new connection takes %s", connected)
	}
}

// A path that dies after the request was sent ends the call, although the Model may think for
// an hour.
func TestADeadPathEndsACall(t *testing.T) {
	t.Parallel()
	kernel := pathTimeouts{tcp: 3 * time.Second, pingAfter: time.Hour, ping: time.Hour}
	pings := pathTimeouts{tcp: time.Hour, pingAfter: time.Second, ping: time.Second}
	cases := map[string]struct {
		path  pathTimeouts
		http2 bool
		half  string // of an answer
		want  string
	}{
		"HTTP/1.1":                         {kernel, false, "", "acknowledged nothing"},
		"HTTP/2":                           {kernel, true, "", "acknowledged nothing"},
		"HTTP/2 behind a proxy that lives": {pings, true, "", "connection lost"},
		"within an answer":                 {kernel, false, "data: 1\n\n", "acknowledged nothing"},
		"within an answer over HTTP/2":     {kernel, true, "data: 1\n\n", "acknowledged nothing"},
		"within an answer, behind a proxy": {pings, true, "data: 1\n\n", "connection lost"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			breakPath := (*listener).drop
			if tc.path == pings {
				breakPath = (*listener).freeze
			}
			err := call(t, tc.path, serve(t, tc.http2, breakPath, tc.half))
			_, unavailable := errors.AsType[*model.UnavailableError](err)
			_, incomplete := errors.AsType[*model.IncompleteError](err)
			if unavailable != (tc.half == "") || incomplete == unavailable || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %T: %v, want %q", err, err, tc.want)
			}
			if _, timeout := errors.AsType[*model.TimeoutError](err); timeout {
				t.Errorf("%v counts as the silence of a server", err)
			}
		})
	}
}

// serve starts a server that breaks its path once it read a request and sent half of an answer.
func serve(t *testing.T, http2 bool, breakPath func(*listener, *testing.T), half string) *httptest.Server {
	t.Helper()
	over := make(chan struct{})
	l := &listener{over: over, frozen: make(chan struct{})}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		if half != "" {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, half)
			_ = http.NewResponseController(w).Flush()
		}
		breakPath(l, t)
		<-over
	}))
	l.Listener, server.Listener = server.Listener, l
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(func() {
		close(over)
		server.Close()
	})
	return server
}

// call asks a server as a Model does, and returns the error of its answer.
func call(t *testing.T, path pathTimeouts, server *httptest.Server) error {
	t.Helper()
	network := transport(path)
	roots := server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	network.TLSClientConfig = &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}
	c := New(provider.Options{Transport: network, Timeouts: provider.Timeouts{FirstByte: time.Hour}}, IdleOwnServer, nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // in place of a test that hangs
	defer cancel()
	x := c.Begin(ctx)
	defer x.End()
	req, err := http.NewRequestWithContext(x.Context(), http.MethodPost, server.URL, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := x.Send(req)
	if err != nil {
		return err
	}
	_, cause := answer.Relay(discard{}, nil)
	return x.Interrupted(cause)
}

// listener can break the paths of its connections.
type listener struct {
	net.Listener
	over, frozen chan struct{}

	mu    sync.Mutex
	conns []*net.TCPConn
}

// Accept implements [net.Listener].
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	tcp, ok := c.(*net.TCPConn)
	if err != nil || !ok {
		return c, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns = append(l.conns, tcp)
	return &freezing{Conn: c, listener: l}, nil
}

// drop drops each packet that comes from now on, before the kernel can acknowledge it.
func (l *listener) drop(t *testing.T) {
	l.mu.Lock()
	defer l.mu.Unlock()
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K} // of a packet is kept
	for _, c := range l.conns {
		raw, err := c.SyscallConn()
		if err != nil {
			t.Error(err)
			return
		}
		failed := raw.Control(func(fd uintptr) {
			err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
		})
		if err = errors.Join(failed, err); err != nil {
			t.Error(err)
		}
	}
}

// freeze lets the kernel acknowledge packets, as a proxy does, that the server never sees.
func (l *listener) freeze(*testing.T) { close(l.frozen) }

// freezing is a connection that can be frozen.
type freezing struct {
	net.Conn
	listener *listener
}

// Read implements [net.Conn].
func (f *freezing) Read(p []byte) (int, error) {
	n, err := f.Conn.Read(p)
	select {
	case <-f.listener.frozen:
		<-f.listener.over
		return 0, io.EOF
	default:
		return n, err
	}
}

// discard decodes nothing.
type discard struct{}

func (discard) Event(Event) error     { return nil }
func (discard) Document([]byte) error { return nil }
func (discard) Take() []model.Delta   { return nil }
