package deadpath_test

import (
	"errors"
	"net"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/deadpath"
)

// limit is the shortest that the kernel's keep-alives allow.
const limit = 3 * time.Second

// connect returns both ends of a connection, of which the client's is watched.
func connect(t *testing.T) (client net.Conn, server *net.TCPConn) {
	t.Helper()
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	client, err = deadpath.Watch((&net.Dialer{}).DialContext, limit)(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = listener.AcceptTCP()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = client.Close(), server.Close() })
	return client, server
}

// drop drops each packet that a connection receives from now on, before the kernel can
// acknowledge it.
func drop(t *testing.T, c *net.TCPConn) {
	t.Helper()
	raw, err := c.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K} // of the packet is kept
	failed := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &unix.SockFprog{Len: 1, Filter: &nothing})
	})
	if err = errors.Join(failed, err); err != nil {
		t.Fatal(err)
	}
}

func TestADeadPathEndsAConnection(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, client net.Conn, server *net.TCPConn){
		"while it waits for an answer": func(t *testing.T, client net.Conn, server *net.TCPConn) {
			send(t, client, "request")
			receive(t, server, "request")
			drop(t, server)
		},
		"while a request is on its way": func(t *testing.T, client net.Conn, server *net.TCPConn) {
			drop(t, server)
			send(t, client, "request")
		},
		"within an answer": func(t *testing.T, client net.Conn, server *net.TCPConn) {
			send(t, client, "request")
			receive(t, server, "request")
			send(t, server, "half")
			receive(t, client, "half")
			drop(t, server)
		},
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := connect(t)
			prepare(t, client, server)
			// In place of a test that hangs.
			if err := client.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
			_, err := client.Read(make([]byte, 1))
			want := "the connection is dead: " + server.LocalAddr().String() + " acknowledged nothing for 3s"
			if dead, ok := errors.AsType[*deadpath.Error](err); !ok || dead.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		})
	}
}

// A server that is busy acknowledges keep-alives, and questions for its full receive window.
func TestALivePathKeepsAConnection(t *testing.T) {
	t.Parallel()
	cases := map[string]func(t *testing.T, client net.Conn){
		"while it waits for an answer":             func(t *testing.T, client net.Conn) { send(t, client, "request") },
		"while the server does not read a request": func(t *testing.T, client net.Conn) { send(t, client, string(make([]byte, 1<<20))) },
	}
	for name, prepare := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, _ := connect(t)
			prepare(t, client)
			if err := client.SetReadDeadline(time.Now().Add(limit + time.Second)); err != nil {
				t.Fatal(err)
			}
			if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func send(t *testing.T, c net.Conn, data string) {
	t.Helper()
	if _, err := c.Write([]byte(data)); err != nil {
		t.Fatal(err)
	}
}

func receive(t *testing.T, c net.Conn, want string) {
	t.Helper()
	got := make([]byte, len(want))
	if n, err := c.Read(got); err != nil || string(got[:n]) != want {
		t.Fatalf("received %q, %v, want %q", got[:n], err, want)
	}
}
