//go:build linux

package sandbox_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

// private starts a sandbox as on a machine that is not a container, and returns the port of
// the proxy.
func private(t *testing.T) (c *sandbox.Client, port int) {
	t.Helper()
	needsVersion(t, 3)
	s := sandboxtest.Start(t, sandboxtest.Private())
	c = sandbox.Dial(s.Socket)
	t.Cleanup(func() { c.Close() })
	_, after, _ := strings.Cut(run(t, c, sh("echo $HTTP_PROXY")).stdout, "127.0.0.1:")
	port, err := strconv.Atoi(strings.TrimSpace(after))
	if err != nil {
		t.Fatal(err)
	}
	return c, port
}

// Another server has the port of the proxy at another address, and others are reachable.
func TestPrivateCommandsConnectToTheProxyOnly(t *testing.T) {
	c, port := private(t)
	for _, address := range []string{"127.0.0.2", "127.0.0.3", "::1"} {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(address, strconv.Itoa(port)))
		if err != nil {
			t.Logf("nothing listens at %s: %v", address, err)
			continue
		}
		t.Cleanup(func() { l.Close() })
	}
	other := listening(t, false)
	for name, tc := range map[string]struct{ line, want string }{
		"the proxy":                           {`connect("127.0.0.1", PORT)`, "ok"},
		"the proxy, by an address of IPv6":    {`connect("::ffff:127.0.0.1", PORT)`, "ok"},
		"the proxy, by a call that waits":     {`socket.socket().connect(("127.0.0.1", PORT))`, "ok"},
		"the proxy, from another thread":      {`[t := threading.Thread(target=attempt, args=(lambda: connect("127.0.0.1", PORT),)), t.start(), t.join()]`, "ok\nok"},
		"the proxy, many times at once":       {`[a := [threading.Thread(target=connect, args=("127.0.0.1", PORT)) for _ in range(200)], [t.start() for t in a], [t.join() for t in a]]`, "ok"},
		"its port at another address":         {`connect("127.0.0.2", PORT)`, "EACCES"},
		"the same, by a call that waits":      {`socket.socket().connect(("127.0.0.3", PORT))`, "EACCES"},
		"its port at every address":           {`connect("0.0.0.0", PORT)`, "EACCES"},
		"its port at another host":            {`connect("192.0.2.2", PORT)`, "EACCES"},
		"its port at loopback of IPv6":        {`connect("::1", PORT)`, "EACCES"},
		"its port, mapped into IPv6":          {`connect("::ffff:127.0.0.2", PORT)`, "EACCES"},
		"its port, by sending":                {`fastopen("127.0.0.2", PORT)`, "EPERM"},
		"its port, by a message":              {`fastmsg("127.0.0.2", PORT)`, "EPERM"},
		"its port, connecting when it sends":  {`[s := socket.socket(), s.setsockopt(6, 30, 1), s.connect(("127.0.0.2", PORT))]`, "EACCES"},
		"another, connecting when it sends":   {`[s := socket.socket(), s.setsockopt(6, 30, 1), s.connect(("127.0.0.1", PORT)), s.sendmsg([b"x"], [], 0, ("127.0.0.2", PORT)), s.getpeername()[0] == "127.0.0.1" or connect("192.0.2.2", 1)]`, "ok"},
		"another host on the way":             {`socket.socket().setsockopt(0, 4, bytes([0x83, 11, 4, 192, 0, 2, 2, 127, 0, 0, 1, 0]))`, "EPERM"},
		"another port of loopback":            {`connect("127.0.0.1", OTHER)`, "EACCES"},
		"an address that cannot be read":      {`call(42, socket.socket().fileno(), 8, 16)`, "EACCES"}, // connect, on amd64
		"what is no socket":                   {`call(42, 99, struct.pack("=H", 2) + struct.pack("!H", PORT) + bytes([127, 0, 0, 1]) + bytes(8), 16)`, "EBADF"},
		"a datagram":                          {`socket.socket(socket.AF_INET, socket.SOCK_DGRAM)`, "EPERM"},
		"a datagram of IPv6":                  {`socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)`, "EPERM"},
		"a raw socket":                        {`socket.socket(socket.AF_INET, socket.SOCK_RAW, 6)`, "EPERM"},
		"MPTCP":                               {`socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)`, "EPERM"},
		"SCTP":                                {`socket.socket(socket.AF_INET6, socket.SOCK_STREAM, 132)`, "EPERM"},
		"the hypervisor":                      {`socket.socket(40, socket.SOCK_STREAM, 0)`, "EPERM"},
		"a server of its own":                 {`socket.create_server(("127.0.0.1", 0))`, "EACCES"},
		"the name of this machine's loopback": {`socket.getaddrinfo("localhost", 80)`, "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			line := strings.NewReplacer("PORT", strconv.Itoa(port), "OTHER", strconv.Itoa(other)).Replace(tc.line)
			if got := try(t, c, line); got != tc.want {
				t.Errorf("%s: %s, want %s", line, got, tc.want)
			}
		})
	}
}

// The server reads the address once, so that a thread that changes it meanwhile gains nothing.
func TestAnAddressThatChangesWhileItIsCheckedLeadsNowhereElse(t *testing.T) {
	c, port := private(t)
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", fmt.Sprintf("127.0.0.2:%d", port))
	if err != nil {
		t.Skipf("not tried: %v", err)
	}
	defer l.Close()
	reached := make(chan struct{}, 1)
	go func() {
		if conn, err := l.Accept(); err == nil {
			conn.Close()
			reached <- struct{}{}
		}
	}()
	const script = `
import ctypes, socket, struct, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
address = ctypes.create_string_buffer(struct.pack("=H", 2) + struct.pack("!H", PORT) + bytes([127, 0, 0, 1]) + bytes(8))
sys.setswitchinterval(1e-5)
ended = False
def change():
    while not ended:
        address[7] = 2
        address[7] = 1
t = threading.Thread(target=change)
t.start()
reached = 0
for n in range(300):
    with socket.socket() as s:
        if libc.connect(s.fileno(), address, 16) == 0:
            reached += 1
            assert s.getpeername() == ("127.0.0.1", PORT)
ended = True
t.join()
print(reached > 0)
`
	got := run(t, c, sandbox.Command{Args: []string{"python3", "-c", strings.ReplaceAll(script, "PORT", strconv.Itoa(port))}})
	if got.stdout != "True\n" || got.exit != exited {
		t.Errorf("%+v", got)
	}
	select {
	case <-reached:
		t.Error("the other address was reached")
	default:
	}
}
