//go:build linux

package confine

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// fastOpen is MSG_FASTOPEN, by which sending connects without a check by Landlock.
const fastOpen = 0x20000000

// netlinkRoute is the family by which programs ask for interfaces and addresses.
const netlinkRoute = 0

// sockType masks the flags of a socket's type.
const sockType = 0xf

// refused are the system calls that are refused with any arguments.
var refused = []uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // bypasses seccomp
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, // frequent source of kernel exploits
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, // keys belong to a user, not to a container
	unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, // out of the container
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_CHROOT,
}

// restrictions select the additional system calls that a filter refuses.
type restrictions struct {
	// private refuses system calls that connect commands with other programs of the same user, or reveal their files:
	// unix sockets other than pairs, System V and POSIX queues and shared memory, listening, and watching files.
	// Landlock restricts none of them before version 9. It does restrict bind, but a process can listen without bind,
	// on a port that the kernel chooses.
	private bool
	// unbound refuses bind, because this kernel cannot restrict its ports.
	unbound bool
	// offline refuses connect, because no server can answer it.
	offline bool
}

// shared are the system calls with which programs of one user share memory and messages, listen, and watch files that
// they may not read.
var shared = []uint32{
	unix.SYS_LISTEN, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_FANOTIFY_INIT,
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// filter returns the seccomp filter. It refuses with EPERM, as a container without
// capabilities does, which programs handle. clone3 returns ENOSYS, because a filter
// cannot read its flags and programs fall back to clone.
func filter(r restrictions) []unix.SockFilter {
	p := &program{}
	p.load(offArch)
	p.unless(arch, p.fail(unix.EPERM))
	p.load(offNumber)
	p.foreign()
	for _, call := range refused {
		p.when(call, p.fail(unix.EPERM))
	}
	p.when(unix.SYS_CLONE3, p.fail(unix.ENOSYS))
	for _, call := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		p.when(call, func(p *program) { p.refuseBits(offArgs, unix.CLONE_NEWUSER) })
	}
	p.when(unix.SYS_SENDTO, func(p *program) { p.refuseBits(offArgs+3*argSize, fastOpen) })
	p.when(unix.SYS_SENDMSG, func(p *program) { p.refuseBits(offArgs+2*argSize, fastOpen) })
	p.when(unix.SYS_SENDMMSG, func(p *program) { p.refuseBits(offArgs+3*argSize, fastOpen) })
	if r.private {
		for _, call := range shared {
			p.when(call, p.fail(unix.EPERM))
		}
		p.when(unix.SYS_SOCKETPAIR, pairs)
		r.connects(p)
	}
	p.when(unix.SYS_SETSOCKOPT, options)
	p.when(unix.SYS_SOCKET, r.sockets)
	ownResources(p)
	p.allow()
	return p.code
}

// sockets allows the sockets that commands need. Of the inet families only TCP is
// allowed: MPTCP and SMC can connect to TCP servers too, and Landlock does not check
// them.
func (r restrictions) sockets(p *program) {
	p.load(offArgs)
	if !r.private {
		p.when(unix.AF_UNIX, (*program).allow)
	}
	p.when(unix.AF_NETLINK, func(p *program) {
		p.load(offArgs + 2*argSize)
		p.when(netlinkRoute, (*program).allow)
		p.refuse(unix.EPERM)
	})
	p.when(unix.AF_INET, streams)
	p.when(unix.AF_INET6, streams)
	p.refuse(unix.EPERM)
}

// connects passes calls of connect to [Connects]. With offline it refuses them, and with unbound it refuses bind.
func (r restrictions) connects(p *program) {
	if r.unbound {
		p.when(unix.SYS_BIND, p.fail(unix.EACCES))
	}
	if r.offline {
		p.when(unix.SYS_CONNECT, p.fail(unix.EACCES))
		return
	}
	p.when(unix.SYS_CONNECT, (*program).notify)
}

// options refuses the options of a socket with which a connection goes elsewhere than to its address: a source route
// sends its packets through any host, and a protocol above TCP, such as SMC, connects without a check by Landlock.
// Programs that use TLS in the kernel, which is such a protocol, continue without it.
func options(p *program) {
	for _, o := range []struct {
		level uint32
		names []uint32
	}{
		{unix.IPPROTO_IP, []uint32{unix.IP_OPTIONS}},
		{unix.IPPROTO_IPV6, []uint32{unix.IPV6_RTHDR, unix.IPV6_2292RTHDR, unix.IPV6_2292PKTOPTIONS}},
		{unix.IPPROTO_TCP, []uint32{unix.TCP_ULP}},
	} {
		p.load(offArgs + argSize)
		p.when(o.level, func(p *program) {
			p.load(offArgs + 2*argSize)
			for _, name := range o.names {
				p.when(name, p.fail(unix.EPERM))
			}
			p.allow()
		})
	}
	p.allow()
}

// pairs allows pairs of sockets that cannot be connected to anything else. Datagram sockets could send to any address.
func pairs(p *program) {
	p.load(offArgs + argSize)
	p.mask(sockType)
	p.when(unix.SOCK_STREAM, (*program).allow)
	p.when(unix.SOCK_SEQPACKET, (*program).allow)
	p.refuse(unix.EPERM)
}

// streams allows TCP.
func streams(p *program) {
	p.load(offArgs + argSize)
	p.mask(sockType)
	p.unless(unix.SOCK_STREAM, p.fail(unix.EPERM))
	p.load(offArgs + 2*argSize)
	p.when(unix.IPPROTO_IP, (*program).allow)
	p.when(unix.IPPROTO_TCP, (*program).allow)
	p.refuse(unix.EPERM)
}

// install installs a filter on this thread. With SECCOMP_FILTER_FLAG_NEW_LISTENER it returns the descriptor for
// answering calls.
func install(code []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}                                                    //nolint:gosec // some hundred
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return 0, fmt.Errorf("installing the seccomp filter: %w", errno)
	}
	return int(fd), nil
}

// installPrivate installs the filter of a private thread. If the kernel does not let this process answer connect calls,
// for example because a surrounding container already has a listener, all connect calls are refused, and offline has
// the reason.
func installPrivate(r restrictions) (connects *Connects, offline, err error) {
	r.private = true
	// Without the second flag, a signal would interrupt the call and make it again.
	fd, offline := install(filter(r), unix.SECCOMP_FILTER_FLAG_NEW_LISTENER|unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV)
	if offline == nil {
		return &Connects{listener: fd, takeSocket: unix.PidfdGetfd}, nil, nil
	}
	r.offline = true
	_, err = install(filter(r), 0)
	return nil, offline, err
}

// maxConnects bounds the connect calls that are answered at once; more wait.
const maxConnects = 64

// Connects has the connect calls of a private thread and its children. Each call waits until Serve answers it. A filter
// cannot decide about them, because it does not see the address. Neither can Landlock, whose rules have only ports.
type Connects struct {
	listener   int
	takeSocket func(pidfd, descriptor, flags int) (int, error)
}

// A notification is struct seccomp_notif, about one call.
type notification struct {
	id             uint64
	thread, _      uint32
	number         int32
	arch           uint32
	instruction    uint64
	fd, address    uint64
	length         uint64
	otherArguments [3]uint64
}

// A notificationAnswer is struct seccomp_notif_resp.
type notificationAnswer struct {
	id    uint64
	value int64
	errno int32 // negative; zero: the call returns value
	flags uint32
}

// An addedDescriptor is struct seccomp_notif_addfd.
type addedDescriptor struct {
	id                       uint64
	flags, from, to, toFlags uint32
}

// Serve connects sockets to one IPv4 address, also in its IPv6 form, and refuses all other connect calls. It returns an
// error when it cannot answer further calls; from then on the kernel refuses them.
func (c *Connects) Serve(only netip.AddrPort) error {
	defer unix.Close(c.listener) //nolint:errcheck // nothing was written
	room := make(chan struct{}, maxConnects)
	for {
		room <- struct{}{}
		var n notification                                                    // the kernel requires zeros
		errno := c.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n)) //nolint:gosec // the kernel writes it
		switch {
		case errno == 0:
			go func() {
				defer func() { <-room }()
				answer := notificationAnswer{id: n.id, errno: -int32(c.connect(n, only))} //nolint:gosec // errors are small
				_ = c.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&answer))     //nolint:gosec // the kernel reads it; the caller may have ended
			}()
			continue
		case errno == unix.EINTR, errno == unix.ENOENT && !c.abandoned(): // the caller has ended
		default:
			return fmt.Errorf("receiving connect calls: %w", errno)
		}
		<-room
	}
}

// abandoned reports whether no thread is left that could make a call.
func (c *Connects) abandoned() bool {
	fds := []unix.PollFd{{Fd: int32(c.listener)}} //nolint:gosec // descriptors are small
	_, err := unix.Poll(fds, 0)
	return err == nil && fds[0].Revents&unix.POLLHUP != 0
}

// control calls ioctl with a pointer.
func (c *Connects) control(request uintptr, at unsafe.Pointer) unix.Errno {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(c.listener), request, uintptr(at))
	return errno
}

// connect makes a call for the caller, with a copy of the address that the caller cannot change any more. It returns
// the error of the call, or zero.
func (c *Connects) connect(n notification, only netip.AddrPort) unix.Errno {
	to, ok := requested(n, only)
	if !ok {
		return unix.EACCES // as Landlock
	}
	fd, err := c.socket(n)
	if err != nil {
		return c.replace(n, to)
	}
	defer unix.Close(fd) //nolint:errcheck // the caller has its own
	return connectTo(fd, to)
}

// connectTo connects a socket. If the socket does not wait, the error is EINPROGRESS.
func connectTo(fd int, to unix.Sockaddr) unix.Errno {
	for {
		err := unix.Connect(fd, to)
		if errno, failed := errors.AsType[unix.Errno](err); !failed || errno != unix.EINTR {
			return errno
		}
	}
}

// Sizes of struct sockaddr_in and of the part of sockaddr_in6 that the kernel requires.
const (
	sizeInet4 = unix.SizeofSockaddrInet4
	sizeInet6 = 24
)

// requested returns the address of a call in the family of its socket, if it is the allowed one.
func requested(n notification, only netip.AddrPort) (unix.Sockaddr, bool) {
	var raw [sizeInet6]byte
	length := min(uint64(uint32(n.length)), sizeInet6) //nolint:gosec // the kernel takes the lower half
	if length == 0 {
		return nil, false
	}
	local := []unix.Iovec{{Base: &raw[0], Len: length}}
	read, err := unix.ProcessVMReadv(int(n.thread), local, []unix.RemoteIovec{{Base: uintptr(n.address), Len: int(length)}}, 0)
	if err != nil || uint64(read) != length { //nolint:gosec // not negative
		return nil, false
	}
	return allowedAddress(raw[:length], only)
}

// allowedAddress parses a struct sockaddr.
func allowedAddress(raw []byte, only netip.AddrPort) (unix.Sockaddr, bool) {
	if len(raw) < sizeInet4 {
		return nil, false
	}
	family, port := binary.NativeEndian.Uint16(raw), binary.BigEndian.Uint16(raw[2:])
	switch {
	case port != only.Port():
	case family == unix.AF_INET && netip.AddrFrom4([4]byte(raw[4:8])) == only.Addr():
		return &unix.SockaddrInet4{Port: int(port), Addr: only.Addr().As4()}, true
	case family == unix.AF_INET6 && len(raw) >= sizeInet6:
		if a := netip.AddrFrom16([16]byte(raw[8:24])); a.Unmap() == only.Addr() {
			return &unix.SockaddrInet6{Port: int(port), Addr: a.As16()}, true
		}
	}
	return nil, false
}

// socket returns a descriptor of the socket of a call.
func (c *Connects) socket(n notification) (int, error) {
	tgid, err := field(fmt.Sprintf("/proc/%d/status", n.thread), "Tgid:", 10)
	if err != nil {
		return 0, err
	}
	pidfd, err := unix.PidfdOpen(int(tgid), 0)
	if err != nil {
		return 0, fmt.Errorf("opening process %d: %w", tgid, err)
	}
	defer unix.Close(pidfd) //nolint:errcheck // it was not written to
	fd, err := c.takeSocket(pidfd, n.descriptor(), 0)
	if err != nil {
		return 0, fmt.Errorf("taking the socket of process %d: %w", tgid, err)
	}
	// Before this check the caller may have ended, so that its number and memory may belong to another process.
	if errno := c.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id)); errno != 0 { //nolint:gosec // the kernel reads it
		_ = unix.Close(fd) // not used
		return 0, fmt.Errorf("looking for the caller: %w", errno)
	}
	return fd, nil
}

// replace replaces the caller's socket by a connected one. Containers often refuse to take the socket of another
// process. Options that the caller has set are lost.
func (c *Connects) replace(n notification, to unix.Sockaddr) unix.Errno {
	flags, err := field(fmt.Sprintf("/proc/%d/fdinfo/%d", n.thread, n.descriptor()), "flags:", 8)
	if err != nil {
		return unix.EBADF
	}
	family := unix.AF_INET
	if _, six := to.(*unix.SockaddrInet6); six {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return unix.EACCES
	}
	defer unix.Close(fd) //nolint:errcheck // the caller has its own
	if errno := connectTo(fd, to); errno != 0 {
		return errno
	}
	if err := unix.SetNonblock(fd, flags&unix.O_NONBLOCK != 0); err != nil {
		return unix.EACCES
	}
	add := addedDescriptor{
		id: n.id, flags: unix.SECCOMP_ADDFD_FLAG_SETFD,
		from: uint32(fd), to: uint32(n.descriptor()), toFlags: uint32(flags) & unix.O_CLOEXEC, //nolint:gosec // descriptors and flags are small
	}
	return c.control(unix.SECCOMP_IOCTL_NOTIF_ADDFD, unsafe.Pointer(&add)) //nolint:gosec // the kernel reads it
}

// descriptor returns the first argument of a call, of which the kernel uses the lower half.
func (n notification) descriptor() int {
	return int(int32(n.fd)) //nolint:gosec // as above
}

// field returns a number of a file of /proc.
func field(file, name string, base int) (int64, error) {
	f, err := os.Open(file)
	if err != nil {
		return 0, err //nolint:wrapcheck // it names the file
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if number, ok := strings.CutPrefix(lines.Text(), name); ok {
			return strconv.ParseInt(strings.TrimSpace(number), base, 64) //nolint:wrapcheck // the kernel writes numbers
		}
	}
	return 0, fmt.Errorf("%s has no %s", file, name) //nolint:err113 // no caller compares it
}
