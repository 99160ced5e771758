//go:build linux

package confine

import (
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// sockaddr returns the bytes of a struct sockaddr_in or sockaddr_in6.
func sockaddr(family uint16, address string) []byte {
	to := netip.MustParseAddrPort(address)
	raw := binary.NativeEndian.AppendUint16(nil, family)
	raw = binary.BigEndian.AppendUint16(raw, to.Port())
	if to.Addr().Is4() {
		return append(append(raw, to.Addr().AsSlice()...), make([]byte, 8)...)
	}
	return append(append(raw, 0, 0, 0, 0), to.Addr().AsSlice()...)
}

func TestAllowedAddress(t *testing.T) {
	only := netip.MustParseAddrPort("127.0.0.1:8080")
	for name, tc := range map[string]struct {
		raw  []byte
		want bool
	}{
		"the proxy":                            {sockaddr(unix.AF_INET, "127.0.0.1:8080"), true},
		"the proxy, as an address of IPv6":     {sockaddr(unix.AF_INET6, "[::ffff:127.0.0.1]:8080"), true},
		"another port":                         {sockaddr(unix.AF_INET, "127.0.0.1:8081"), false},
		"another address of loopback":          {sockaddr(unix.AF_INET, "127.0.0.2:8080"), false},
		"another host":                         {sockaddr(unix.AF_INET, "192.0.2.2:8080"), false},
		"every address, which is this machine": {sockaddr(unix.AF_INET, "0.0.0.0:8080"), false},
		"another host, as an address of IPv6":  {sockaddr(unix.AF_INET6, "[::ffff:192.0.2.2]:8080"), false},
		"loopback of IPv6":                     {sockaddr(unix.AF_INET6, "[::1]:8080"), false},
		"an address of IPv6 with the same end": {sockaddr(unix.AF_INET6, "[2001:db8::7f00:1]:8080"), false},
		"no family, which disconnects":         {sockaddr(unix.AF_UNSPEC, "127.0.0.1:8080"), false},
		"another family":                       {sockaddr(unix.AF_VSOCK, "127.0.0.1:8080"), false},
		"an address of IPv4 as one of IPv6":    {append(sockaddr(unix.AF_INET6, "127.0.0.1:8080"), make([]byte, 8)...), false},
		"an address of IPv4 that is cut":       {sockaddr(unix.AF_INET, "127.0.0.1:8080")[:15], false},
		"an address of IPv6 that is cut":       {sockaddr(unix.AF_INET6, "[::ffff:127.0.0.1]:8080")[:23], false},
		"nothing":                              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := allowedAddress(tc.raw, only); got != tc.want {
				t.Errorf("%v, want %v", got, tc.want)
			}
		})
	}
}

// onFilteredThread runs f on a thread whose connect calls are answered, and which ends then.
func onFilteredThread(t *testing.T, serve func(*Connects), f func()) {
	t.Helper()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runtime.LockOSThread() // and not unlocked: the thread ends
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			t.Error(err)
			return
		}
		connects, offline, err := installPrivate(restrictions{})
		if err := errors.Join(offline, err); err != nil {
			t.Errorf("this kernel does not let connect calls be answered: %v", err)
			return
		}
		go serve(connects)
		f()
	}()
	<-ended
}

// An attempt is a connect call on a filtered thread.
type attempt struct {
	take    func(pidfd, descriptor, flags int) (int, error)
	flags   int // of the socket
	address [4]byte
	want    error
}

func TestConnectsServe(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	only := netip.MustParseAddrPort(l.Addr().String())
	refuse := func(int, int, int) (int, error) { return 0, unix.EPERM }
	for name, a := range map[string]attempt{
		"a socket that waits":                              {unix.PidfdGetfd, 0, [4]byte{127, 0, 0, 1}, nil},
		"a socket that does not wait":                      {unix.PidfdGetfd, unix.SOCK_NONBLOCK, [4]byte{127, 0, 0, 1}, unix.EINPROGRESS},
		"another address":                                  {unix.PidfdGetfd, 0, [4]byte{127, 0, 0, 2}, unix.EACCES},
		"in a container, a socket that waits":              {refuse, 0, [4]byte{127, 0, 0, 1}, nil},
		"in a container, a socket that does not wait":      {refuse, unix.SOCK_NONBLOCK, [4]byte{127, 0, 0, 1}, nil},
		"in a container, a socket that ends with its exec": {refuse, unix.SOCK_CLOEXEC, [4]byte{127, 0, 0, 1}, nil},
		"in a container, another address":                  {refuse, 0, [4]byte{127, 0, 0, 2}, unix.EACCES},
	} {
		t.Run(name, func(t *testing.T) {
			serve := func(c *Connects) {
				c.takeSocket = a.take
				_ = c.Serve(only) // until the thread ends
			}
			onFilteredThread(t, serve, func() { a.make(t, only.Port()) })
			if errors.Is(a.want, unix.EACCES) {
				return
			}
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conn.Close()
		})
	}
}

// make makes the attempt. What a program sees of its socket does not change.
func (a attempt) make(t *testing.T, port uint16) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|a.flags, 0)
	if err != nil {
		t.Error(err)
		return
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, &unix.SockaddrInet4{Port: int(port), Addr: a.address}); !errors.Is(err, a.want) {
		t.Errorf("%v, want %v", err, a.want)
	}
	status, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if waits := status&unix.O_NONBLOCK == 0; err != nil || waits != (a.flags&unix.SOCK_NONBLOCK == 0) {
		t.Errorf("the socket waits: %v, %v", waits, err)
	}
	inherited, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	if ends := inherited&unix.FD_CLOEXEC != 0; err != nil || ends != (a.flags&unix.SOCK_CLOEXEC != 0) {
		t.Errorf("the socket ends with exec: %v, %v", ends, err)
	}
}
