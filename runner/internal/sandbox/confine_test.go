//go:build linux

package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/egress"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/sandboxtest"
)

// confined starts a sandbox as in a pod.
func confined(t *testing.T, environ ...string) (*sandbox.Client, *sandboxtest.Server) {
	t.Helper()
	s := sandboxtest.Start(t, sandboxtest.Confined(), sandboxtest.Environ(environ...))
	c := sandbox.Dial(s.Socket)
	t.Cleanup(func() { c.Close() })
	return c, s
}

// needs skips a test on a kernel whose Landlock is older.
func needs(t *testing.T, c *sandbox.Client, abi int) sandbox.Description {
	t.Helper()
	d, err := c.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if d.Confinement.LandlockABI < abi {
		t.Skipf("not tried: this kernel has version %d of Landlock, and it takes %d", d.Confinement.LandlockABI, abi)
	}
	if d.Python == "" {
		t.Skip("not tried: there is no Python on this machine")
	}
	return d
}

// try is a line of Python, and what it prints: ok or the name of an error.
func try(t *testing.T, c *sandbox.Client, line string) string {
	t.Helper()
	if strings.Contains(line, "call(") && runtime.GOARCH != "amd64" {
		t.Skip("not tried: system calls have other numbers here")
	}
	got := run(t, c, sandbox.Command{Args: []string{"python3", "-c", attempts + "attempt(lambda: " + line + ")\n"}})
	return strings.TrimSpace(got.stdout + got.stderr)
}

// attempts is what the lines of try have at hand.
const attempts = `
import ctypes, errno, os, resource, shutil, signal, socket, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *args):
    if libc.syscall(number, *args) < 0:
        raise OSError(ctypes.get_errno(), "syscall")
def connect(host, port):
    socket.create_connection((host, port), timeout=2).close()
def listens(port):
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError as e:
        if e.errno != errno.EADDRINUSE:
            raise
        return False # another program has this port
    return True
def fastopen(host, port):
    s = socket.socket()
    s.settimeout(2)
    s.sendto(b"x", socket.MSG_FASTOPEN, (host, port))
def fastmsg(host, port):
    s = socket.socket()
    s.settimeout(2)
    s.sendmsg([b"x"], [], socket.MSG_FASTOPEN, (host, port))
def attempt(what):
    try:
        what()
        print("ok")
    except OSError as e:
        print(errno.errorcode.get(e.errno, repr(e)))
`

// listening is a server on loopback, at a port below 1024 or above.
func listening(t *testing.T, low bool) int {
	t.Helper()
	ports := []int{0}
	if low {
		ports = []int{1023, 1021, 1019, 1013, 1009, 997, 991}
	}
	for _, port := range ports {
		l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			continue
		}
		t.Cleanup(func() { l.Close() })
		return l.Addr().(*net.TCPAddr).Port
	}
	t.Skip("not tried: no such port is free")
	return 0
}

func TestWhatTheNetworkIs(t *testing.T) {
	c, _ := confined(t)
	needs(t, c, 4)
	low, high := listening(t, true), listening(t, false)
	for name, tc := range map[string]struct{ line, want string }{
		"a server on a high port":              {fmt.Sprintf(`connect("127.0.0.1", %d)`, high), "ok"},
		"a server on a low port":               {fmt.Sprintf(`connect("127.0.0.1", %d)`, low), "EACCES"},
		"a low port by fast open":              {fmt.Sprintf(`fastopen("127.0.0.1", %d)`, low), "EPERM"},
		"a low port by a message":              {fmt.Sprintf(`fastmsg("127.0.0.1", %d)`, low), "EPERM"},
		"the metadata service":                 {`connect("169.254.169.254", 80)`, "EACCES"},
		"the Internet":                         {`connect("1.1.1.1", 443)`, "EACCES"},
		"the Internet in IPv6":                 {`connect("2606:4700:4700::1111", 443)`, "EACCES"},
		"a server of its own":                  {`socket.create_server(("127.0.0.1", 0))`, "ok"},
		"a server of its own, on a high port":  {`next(port for port in range(28123, 28223) if listens(port))`, "ok"},
		"a datagram":                           {`socket.socket(socket.AF_INET, socket.SOCK_DGRAM)`, "EPERM"},
		"a datagram of IPv6":                   {`socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)`, "EPERM"},
		"a datagram with flags":                {`socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC)`, "EPERM"},
		"a raw socket":                         {`socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)`, "EPERM"},
		"ping's socket":                        {`socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)`, "EPERM"},
		"MPTCP, which speaks with TCP":         {`socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)`, "EPERM"},
		"SMC, which speaks with TCP":           {`socket.socket(43, socket.SOCK_STREAM, 0)`, "EPERM"},
		"SCTP":                                 {`socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)`, "EPERM"},
		"packets":                              {`socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)`, "EPERM"},
		"the hypervisor":                       {`socket.socket(40, socket.SOCK_STREAM, 0)`, "EPERM"},
		"the kernel's ciphers":                 {`socket.socket(38, socket.SOCK_SEQPACKET, 0)`, "EPERM"},
		"the kernel's firewall":                {`socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12)`, "EPERM"},
		"the kernel's interfaces":              {`socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0)`, "ok"},
		"sockets between programs":             {`socket.socketpair()`, "ok"},
		"the name of this machine's loopback":  {`socket.getaddrinfo("localhost", 80)`, "ok"},
		"a ring of system calls":               {`call(425, 1, ctypes.create_string_buffer(256))`, "EPERM"},
		"a user namespace":                     {`call(272, 0x10000000)`, "EPERM"}, // unshare, on amd64
		"keys of the user":                     {`call(250, 0, -3, 0)`, "EPERM"},   // keyctl
		"programs in the kernel":               {`call(321, 0, 0, 0)`, "EPERM"},    // bpf
		"clone3, whose flags are out of sight": {`call(435, 0, 0)`, "ENOSYS"},
		"the x32 ABI":                          {`call(0x40000000 + 39)`, "EPERM"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := try(t, c, tc.line); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.line, got, tc.want)
			}
		})
	}
}

func TestWhatCannotBeChanged(t *testing.T) {
	c, s := confined(t)
	needs(t, c, 6)
	deckhand := filepath.Dir(filepath.Dir(s.Socket))
	run := filepath.Dir(s.Socket)
	pid := s.Process.Pid
	for name, tc := range map[string]struct{ line, want string }{
		"removing the socket":                 {fmt.Sprintf("os.remove(%q)", s.Socket), "EACCES"},
		"moving the socket":                   {fmt.Sprintf("os.rename(%q, %q)", s.Socket, s.Workspace+"/x"), "EACCES"},
		"moving the directory":                {fmt.Sprintf("os.rename(%q, %q)", run, run+"2"), "EACCES"},
		"moving all of it":                    {fmt.Sprintf("os.rename(%q, %q)", deckhand, deckhand+"2"), "EACCES"},
		"a file beside the socket":            {fmt.Sprintf("open(%q, 'w')", run+"/x"), "EACCES"},
		"a socket beside the socket":          {fmt.Sprintf("socket.socket(socket.AF_UNIX).bind(%q)", run+"/proxy.sock"), "EACCES"},
		"a directory beside the socket":       {fmt.Sprintf("os.mkdir(%q)", run+"/x"), "EACCES"},
		"a link to somewhere else":            {fmt.Sprintf("os.symlink('/', %q)", run+"/x"), "EACCES"},
		"a second name of the socket":         {fmt.Sprintf("os.link(%q, %q)", s.Socket, s.Workspace+"/x"), "EXDEV"},
		"a way through the process's root":    {fmt.Sprintf("open('/proc/self/root' + %q, 'w')", run+"/x"), "EACCES"},
		"a way through the server's root":     {fmt.Sprintf("open('/proc/%d/root' + %q, 'w')", pid, run+"/x"), "EACCES"},
		"a file in the workspace":             {fmt.Sprintf("open(%q, 'w').write('x')", s.Workspace+"/a"), "ok"},
		"moving files between directories":    {fmt.Sprintf("[os.makedirs(%[1]q + '/d1/d2'), open(%[1]q + '/d1/f', 'w').close(), os.rename(%[1]q + '/d1/f', %[1]q + '/d1/d2/f')]", s.Workspace), "ok"},
		"linking files between directories":   {fmt.Sprintf("[os.makedirs(%[1]q + '/e1/e2'), open(%[1]q + '/e1/f', 'w').close(), os.link(%[1]q + '/e1/f', %[1]q + '/e1/e2/f')]", s.Workspace), "ok"},
		"a file in HOME":                      {fmt.Sprintf("open(%q, 'w')", s.Home+"/a"), "ok"},
		"a device":                            {"open('/dev/null', 'w').write('x')", "ok"},
		"the server's environment":            {fmt.Sprintf("open('/proc/%d/environ').read()", pid), "EACCES"},
		"the server's memory":                 {fmt.Sprintf("open('/proc/%d/mem', 'rb').read(1)", pid), "EACCES"},
		"the server's files":                  {fmt.Sprintf("os.listdir('/proc/%d/fd')", pid), "EACCES"},
		"tracing the server":                  {fmt.Sprintf("call(101, 16, %d, 0, 0)", pid), "EPERM"},
		"ending the server":                   {fmt.Sprintf("os.kill(%d, signal.SIGTERM)", pid), "EPERM"},
		"becoming root":                       {"os.setuid(0)", "EPERM"},
		"tracing its own children, as always": {"[p := os.fork(), p or signal.pause(), call(101, 16, p, 0, 0), os.kill(p, 9)]", "ok"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := try(t, c, tc.line); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.line, got, tc.want)
			}
		})
	}
	if _, err := os.Stat(s.Socket); err != nil {
		t.Errorf("after all that: %v", err)
	}
}

func TestCommandsSignalOneAnother(t *testing.T) {
	c, _ := confined(t)
	p := begin(t, c, sh("echo $$; exec sleep 1000"))
	pid := strings.TrimSpace(string((<-p.Output()).Data))
	if got := run(t, c, sh("kill "+pid)); got.exit != exited {
		t.Errorf("killing another command: %+v", got)
	}
	if got := collect(t, p); got.exit.Signal != "SIGTERM" {
		t.Errorf("it ended with %+v", got)
	}
}

func TestACommandIsNoRunner(t *testing.T) {
	c, s := confined(t)
	needs(t, c, 0)
	line := fmt.Sprintf("[s := socket.socket(socket.AF_UNIX), s.connect(%q), s.sendall(b's\\0\\0\\0\\0'), print(s.recv(9))]", s.Socket)
	if got := try(t, c, line); !strings.HasPrefix(got, "b''") && got != "ECONNRESET" && got != "EPIPE" {
		t.Errorf("opening a session from within: %s", got)
	}
	if got := run(t, c, sh("echo the session lives")); got.exit != exited {
		t.Errorf("%+v", got)
	}
}

func TestTheEnvironmentTellsNothing(t *testing.T) {
	c, _ := confined(t,
		"KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443", "KUBERNETES_PORT=tcp://10.96.0.1:443",
		"DECKHAND_NETWORK_CHECK=192.0.2.1:20471",
		"DB_SERVICE_HOST=10.96.0.2", "DB_SERVICE_PORT=5432", "DB_SERVICE_PORT_SQL=5432", "DB_PORT=tcp://10.96.0.2:5432", "DB_PORT_5432_TCP=tcp://10.96.0.2:5432",
		"DB_PORT_5432_TCP_ADDR=10.96.0.2", "FROM_IMAGE=yes", "APP_PORT=8080",
	)
	got := run(t, c, sh("env | grep -E '^(KUBERNETES|DECKHAND|DB|FROM|APP|NO_PROXY|no_proxy)' | sort; env | grep -ciE '^https?_proxy=http://127.0.0.1:[0-9]+$'"))
	want := "APP_PORT=8080\nDECKHAND_REQUEST=call-1\nFROM_IMAGE=yes\nNO_PROXY=localhost,127.0.0.1,::1\nno_proxy=localhost,127.0.0.1,::1\n4\n"
	if diff := cmp.Diff(want, got.stdout); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// The folder of a volume is root's, and git would not work in it. What an image
// says itself stands.
func TestGitTrustsTheWorkspace(t *testing.T) {
	for _, name := range []string{"GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0"} {
		t.Setenv(name, "") // so that it is as it was, in the end
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	line := sh(`echo "$GIT_CONFIG_COUNT $GIT_CONFIG_KEY_0 $([ "$GIT_CONFIG_VALUE_0" = "$PWD" ] && echo here)"`)
	c, _ := confined(t)
	if got := run(t, c, line); got.stdout != "1 safe.directory here\n" {
		t.Errorf("commands are told %q", got.stdout)
	}
	c, _ = confined(t, "GIT_CONFIG_COUNT=0")
	if got := run(t, c, line); !strings.HasPrefix(got.stdout, "0 ") {
		t.Errorf("with an image that says otherwise, commands are told %q", got.stdout)
	}
	open := sandbox.Dial(sandboxtest.Start(t).Socket)
	defer open.Close()
	if got := run(t, open, line); got.stdout != "  \n" {
		t.Errorf("beside credentials, commands are told %q", got.stdout)
	}
}

func TestWhatHoldsIsTriedAndReported(t *testing.T) {
	c, s := confined(t, "KUBERNETES_SERVICE_HOST=10.96.0.1", "KUBERNETES_SERVICE_PORT=443")
	d := needs(t, c, 6)
	want := sandbox.Confinement{Process: sandbox.Enforced, Files: sandbox.Enforced, Network: sandbox.PortsOnly, LandlockABI: d.Confinement.LandlockABI}
	if diff := cmp.Diff(want, d.Confinement); diff != "" {
		t.Errorf("confinement, -want +got:\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Dir(s.Socket) + "/.*"); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWithoutConfinementNothingIsClaimed(t *testing.T) {
	c, _ := sandboxtest.New(t)
	d, err := c.Describe(t.Context())
	want := sandbox.Confinement{Process: sandbox.Unenforced, Files: sandbox.Unenforced, Network: sandbox.Unenforced}
	if diff := cmp.Diff(want, d.Confinement); err != nil || diff != "" {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if d.Shell == "" {
		t.Errorf("no shell was found: %+v", d)
	}
}

func TestTheWayOutIsTheRunnersProxy(t *testing.T) {
	c, s := confined(t)
	needs(t, c, 4)
	fetch := func(url string) string {
		script := "import urllib.request, urllib.error\ntry: print(urllib.request.urlopen('" + url + "').read().decode())\nexcept urllib.error.HTTPError as e: print(e.code, e.read().decode())"
		got := run(t, c, sandbox.Command{Args: []string{"python3", "-c", script}})
		return got.stdout + got.stderr
	}
	if got := fetch("http://good.example/"); !strings.Contains(got, "The way out of this sandbox is closed") {
		t.Errorf("without a proxy: %s", got)
	}
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello from ", r.Host) }))
	defer host.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- egress.Serve(ctx, filepath.Join(filepath.Dir(s.Socket), "proxy.sock"), egress.Options{
			Hosts: []string{"good.example"},
			Resolve: func(context.Context, string) ([]netip.Addr, error) {
				return []netip.Addr{netip.MustParseAddr("1.1.1.1")}, nil
			},
			Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return (&net.Dialer{}).DialContext(ctx, network, host.Listener.Addr().String())
			},
		})
	}()
	proxy := filepath.Join(filepath.Dir(s.Socket), "proxy.sock")
	for {
		info, err := os.Stat(proxy)
		if err == nil && info.Mode().Perm() == 0o660 {
			break
		}
		if err != nil && !errors.Is(err, syscall.ENOENT) {
			t.Fatal(err)
		}
	}
	if err := os.Chown(proxy, 65532, 65532); err != nil { // the runner is the same user
		t.Fatal(err)
	}
	if got := fetch("http://good.example/"); !strings.Contains(got, "hello from good.example") {
		t.Errorf("a host of the list: %s", got)
	}
	if got := fetch("http://evil.example/"); !strings.Contains(got, "403") || !strings.Contains(got, "sandbox.egress.hosts") {
		t.Errorf("another host: %s", got)
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("Serve: %v", err)
	}
}
