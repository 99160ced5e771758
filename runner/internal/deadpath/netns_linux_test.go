package deadpath_test

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/deadpath"
)

// inNamespace is set in the environment of a test that runs in a network namespace of its own.
const inNamespace = "DEADPATH_IN_NAMESPACE"

// A network that is gone drops packets in both directions, and without an error.
func TestANetworkThatIsGoneEndsAConnection(t *testing.T) {
	if os.Getenv(inNamespace) == "" {
		t.Parallel()
		runInNamespace(t)
		return
	}
	setLoopback(t, true)
	client, server := connect(t)
	send(t, client, "request")
	receive(t, server, "request")
	setLoopback(t, false)
	if err := client.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err := client.Read(make([]byte, 1))
	if _, dead := errors.AsType[*deadpath.Error](err); !dead {
		t.Errorf("got %v", err)
	}
}

// runInNamespace runs this test again, in a network namespace.
func runInNamespace(t *testing.T) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	test := exec.CommandContext(t.Context(), program, "-test.run=^"+t.Name()+"$")
	test.Env = append(os.Environ(), inNamespace+"=1")
	test.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Getuid() != 0 {
		test.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		test.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		test.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := test.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) {
		t.Skipf("this machine allows no network namespaces: %v", err)
	}
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// setLoopback turns the only network of a namespace on or off.
func setLoopback(t *testing.T, on bool) {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(socket)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		t.Fatal(err)
	}
	if on {
		request.SetUint16(unix.IFF_UP)
	}
	if err := unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request); err != nil {
		t.Fatal(err)
	}
}
