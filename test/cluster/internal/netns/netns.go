// Package netns makes a network namespace that nothing leaves, and reaches into it.
package netns

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/sys/unix"
)

const folder = "/run/netns"

// A Namespace is a network namespace by its name, as `ip netns` knows it.
type Namespace string

// Path returns the file that stands for the namespace.
func (n Namespace) Path() string { return filepath.Join(folder, string(n)) }

// Exists reports whether the namespace is there. A file left by an earlier boot
// is not a namespace: it lies on the disk's file system, not on the kernel's.
func (n Namespace) Exists() bool {
	var fs unix.Statfs_t
	return unix.Statfs(n.Path(), &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// Create makes the namespace, with a device named node that has the address. All routes lead to the device, so packets
// for unknown addresses end there. It is a bridge, because not every kernel has dummy devices.
func (n Namespace) Create(ctx context.Context, address string) error {
	if n.Exists() {
		return nil
	}
	if err := os.Remove(n.Path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing an earlier boot's namespace: %w", err)
	}
	if err := ip(ctx, "netns", "add", string(n)); err != nil {
		return err
	}
	steps := []string{
		"link set lo up",
		"link add node type bridge",
		"addr add " + address + "/32 dev node",
		"link set node up",
		"route add default dev node",
	}
	for _, step := range steps {
		if err := ip(ctx, append([]string{"-n", string(n)}, strings.Fields(step)...)...); err != nil {
			return errors.Join(err, n.Delete(ctx))
		}
	}
	return n.forward()
}

// An End is one end of a connection between two nodes.
type End struct {
	Namespace
	Address string // of the node
	Behind  string // the range that the node routes to
}

// Connect connects two nodes with a pair of virtual devices, and adds routes to the other node and to its pods. The
// devices exist until one of the namespaces is deleted.
func Connect(ctx context.Context, a, b End) error {
	steps := []string{
		"-n " + string(a.Namespace) + " link add peer type veth peer name peer netns " + string(b.Namespace),
	}
	for _, way := range [][2]End{{a, b}, {b, a}} {
		from, to := way[0], way[1]
		for _, step := range []string{
			"link set peer up",
			"route add " + to.Address + " dev peer src " + from.Address,
			"route add " + to.Behind + " via " + to.Address + " dev peer src " + from.Address,
		} {
			steps = append(steps, "-n "+string(from.Namespace)+" "+step)
		}
	}
	for _, step := range steps {
		if err := ip(ctx, strings.Fields(step)...); err != nil {
			return err
		}
	}
	return nil
}

// forward lets the node route between its pods.
func (n Namespace) forward() error {
	return n.inside(func() error {
		return os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0o644)
	})
}

// Delete removes the namespace, and after the last namespace the mount on which `ip netns` keeps them.
func (n Namespace) Delete(ctx context.Context) error {
	if n.Exists() {
		if err := ip(ctx, "netns", "del", string(n)); err != nil {
			return err
		}
	}
	if err := os.Remove(n.Path()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("removing namespace: %w", err)
	}
	others, err := os.ReadDir(folder)
	if errors.Is(err, os.ErrNotExist) || len(others) > 0 {
		return nil
	}
	if err != nil {
		return fmt.Errorf("listing namespaces: %w", err)
	}
	if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("unmounting %s: %w", folder, err)
	}
	return os.Remove(folder)
}

// Dial connects from inside the namespace. The address must be a number: names
// are looked up by other threads, which are not inside.
func (n Namespace) Dial(ctx context.Context, network, address string) (conn net.Conn, err error) {
	err = n.inside(func() error {
		var d net.Dialer
		var err error
		conn, err = d.DialContext(ctx, network, address)
		return err
	})
	return conn, err
}

// Listen listens inside the namespace.
func (n Namespace) Listen(ctx context.Context, network, address string) (l net.Listener, err error) {
	err = n.inside(func() error {
		var c net.ListenConfig
		var err error
		l, err = c.Listen(ctx, network, address)
		return err
	})
	return l, err
}

// inside calls f on a thread that has entered the namespace. The thread is never
// unlocked, so that it ends with its goroutine and nothing else runs on it.
func (n Namespace) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		err := n.enter()
		if err == nil {
			err = f()
		}
		done <- err
	}()
	return <-done
}

// enter moves the calling thread into the namespace.
func (n Namespace) enter() error {
	f, err := os.Open(n.Path())
	if err != nil {
		return fmt.Errorf("opening namespace: %w", err)
	}
	defer f.Close()
	if err := unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("entering namespace %s: %w", n, err)
	}
	return nil
}

func ip(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "ip", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("running ip %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}
