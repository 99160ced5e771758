//go:build linux

package confine

import (
	"fmt"
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
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, // keys are of a user, not of a container
	unix.SYS_SETNS, unix.SYS_OPEN_BY_HANDLE_AT, // out of the container
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN,
	unix.SYS_FSMOUNT, unix.SYS_FSCONFIG, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_CHROOT,
}

// restrictions are what a filter refuses beyond what every filter does.
type restrictions struct {
	// private refuses what connects commands with other programs of the same user, and tells
	// of their files: unix sockets other than pairs, System V and POSIX queues and shared
	// memory, listening, and watching files. Landlock does not restrict any of them before
	// version 9; of listening it restricts bind, without which the kernel chooses a port.
	private bool
	// unbound refuses bind, because this kernel cannot restrict its ports.
	unbound bool
	// offline refuses connect, because nothing can answer it.
	offline bool
}

// shared are the system calls by which programs of one user share memory and messages, serve
// others, and watch files that they may not read.
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

// connects leaves connect to [Connects].
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

// options refuses the options of a socket by which a connection leads elsewhere than to its
// address: a source route sends its packets through any host, and a protocol above TCP,
// such as SMC, connects without a check by Landlock. Programs that encrypt in the kernel
// (TLS is such a protocol) go on without it.
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

// pairs allows pairs of sockets that cannot be connected to anything else. Datagrams could be
// sent to any address.
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

// install installs a filter on this thread. With the flag for it, it returns the descriptor
// by which calls are answered.
func install(code []unix.SockFilter, flags uintptr) (int, error) {
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}                                                    //nolint:gosec // some hundred
	fd, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // the kernel reads it
	if errno != 0 {
		return 0, fmt.Errorf("installing the seccomp filter: %w", errno)
	}
	return int(fd), nil
}

// installPrivate installs the filter of a private thread. If the kernel does not let this
// process answer connect calls, for example because a container around it has them
// answered already, it refuses them all and returns why.
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
