//go:build linux

package confine

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"
)

// ask runs a filter on a system call, as the kernel would.
func ask(t *testing.T, code []unix.SockFilter, architecture, number uint32, args ...uint64) uint32 {
	t.Helper()
	var data [64]byte
	binary.NativeEndian.PutUint32(data[offNumber:], number)
	binary.NativeEndian.PutUint32(data[offArch:], architecture)
	for i, a := range args {
		binary.NativeEndian.PutUint64(data[offArgs+i*argSize:], a)
	}
	var word uint32
	for at := 0; at < len(code); at++ {
		in := code[at]
		jump := func(yes bool) {
			if yes {
				at += int(in.Jt)
			} else {
				at += int(in.Jf)
			}
		}
		switch in.Code {
		case unix.BPF_LD | unix.BPF_W | unix.BPF_ABS:
			word = binary.NativeEndian.Uint32(data[in.K:])
		case unix.BPF_ALU | unix.BPF_AND | unix.BPF_K:
			word &= in.K
		case unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K:
			jump(word == in.K)
		case unix.BPF_JMP | unix.BPF_JGE | unix.BPF_K:
			jump(word >= in.K)
		case unix.BPF_JMP | unix.BPF_JSET | unix.BPF_K:
			jump(word&in.K != 0)
		case unix.BPF_RET | unix.BPF_K:
			return in.K
		default:
			t.Fatalf("instruction %d is none: %+v", at, in)
		}
	}
	t.Fatal("the filter does not end")
	return 0
}

func TestFilterOfAPrivateThread(t *testing.T) {
	const eperm, eacces = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO | uint32(unix.EACCES)
	const allow, asked = unix.SECCOMP_RET_ALLOW, unix.SECCOMP_RET_USER_NOTIF
	tcp := []uint64{unix.AF_INET, unix.SOCK_STREAM, 0}
	for name, tc := range map[string]struct {
		restrictions restrictions
		number       uint32
		args         []uint64
		want         uint32
	}{
		"read":                          {restrictions{}, unix.SYS_READ, nil, allow},
		"unix":                          {restrictions{}, unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_STREAM, 0}, eperm},
		"a pair":                        {restrictions{}, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_STREAM | unix.SOCK_CLOEXEC, 0}, allow},
		"a pair of packets":             {restrictions{}, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_SEQPACKET, 0}, allow},
		"a pair that sends":             {restrictions{}, unix.SYS_SOCKETPAIR, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, eperm},
		"shared memory":                 {restrictions{}, unix.SYS_SHMAT, []uint64{7, 0, 0}, eperm},
		"a queue":                       {restrictions{}, unix.SYS_MQ_OPEN, nil, eperm},
		"tcp":                           {restrictions{}, unix.SYS_SOCKET, tcp, allow},
		"tcp of IPv6":                   {restrictions{}, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, 0}, allow},
		"udp":                           {restrictions{}, unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_DGRAM, 0}, eperm},
		"sctp":                          {restrictions{}, unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_SCTP}, eperm},
		"a user namespace":              {restrictions{}, unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER}, eperm},
		"memory of a server":            {restrictions{}, unix.SYS_SHMGET, nil, eperm},
		"listening":                     {restrictions{}, unix.SYS_LISTEN, []uint64{3, 128}, eperm}, // without bind, the kernel chooses a port of every address
		"watching files":                {restrictions{}, unix.SYS_INOTIFY_ADD_WATCH, []uint64{3, 0, 1}, eperm},
		"watching a disk":               {restrictions{}, unix.SYS_FANOTIFY_INIT, nil, eperm},
		"connecting":                    {restrictions{}, unix.SYS_CONNECT, []uint64{3, 0, 16}, asked},
		"connecting, without an answer": {restrictions{offline: true}, unix.SYS_CONNECT, []uint64{3, 0, 16}, eacces},
		"connecting by sending":         {restrictions{}, unix.SYS_SENDTO, []uint64{3, 0, 0, fastOpen}, eperm},
		"a port":                        {restrictions{}, unix.SYS_BIND, []uint64{3, 0, 16}, allow},
		"a port, without Landlock":      {restrictions{unbound: true}, unix.SYS_BIND, []uint64{3, 0, 16}, eacces},
		"a source route":                {restrictions{}, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_OPTIONS, 0, 11}, eperm},
		"a source route of IPv6":        {restrictions{}, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_RTHDR, 0, 24}, eperm},
		"its first form":                {restrictions{}, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_2292RTHDR, 0, 24}, eperm},
		"all headers of IPv6 at once":   {restrictions{}, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_2292PKTOPTIONS, 0, 24}, eperm},
		"IPv6 sockets without IPv4":     {restrictions{}, unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 0, 4}, allow},
	} {
		t.Run(name, func(t *testing.T) {
			tc.restrictions.private = true
			if got := ask(t, filter(tc.restrictions), arch, tc.number, tc.args...); got != tc.want {
				t.Errorf("%#x, want %#x", got, tc.want)
			}
		})
	}
}

func TestFilter(t *testing.T) {
	const eperm, enosys = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM), unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)
	const allow = unix.SECCOMP_RET_ALLOW
	code := filter(restrictions{})
	for name, tc := range map[string]struct {
		number uint32
		args   []uint64
		want   uint32
	}{
		"read":                   {unix.SYS_READ, nil, allow},
		"execve":                 {unix.SYS_EXECVE, nil, allow},
		"ptrace":                 {unix.SYS_PTRACE, nil, allow},
		"tcp":                    {unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_CLOEXEC | unix.SOCK_NONBLOCK, 0}, allow},
		"tcp by its name":        {unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, unix.IPPROTO_TCP}, allow},
		"mptcp":                  {unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_STREAM, 262}, eperm},
		"udp":                    {unix.SYS_SOCKET, []uint64{unix.AF_INET6, unix.SOCK_DGRAM | unix.SOCK_CLOEXEC, 0}, eperm},
		"raw":                    {unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_RAW, 6}, eperm},
		"a type that is two":     {unix.SYS_SOCKET, []uint64{unix.AF_INET, unix.SOCK_STREAM | unix.SOCK_DGRAM, 0}, eperm},
		"high bits of a family":  {unix.SYS_SOCKET, []uint64{1<<32 | unix.AF_INET, unix.SOCK_DGRAM, 0}, eperm},
		"unix":                   {unix.SYS_SOCKET, []uint64{unix.AF_UNIX, unix.SOCK_DGRAM, 0}, allow},
		"route":                  {unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, 0}, allow},
		"netfilter":              {unix.SYS_SOCKET, []uint64{unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_NETFILTER}, eperm},
		"vsock":                  {unix.SYS_SOCKET, []uint64{unix.AF_VSOCK, unix.SOCK_STREAM, 0}, eperm},
		"alg":                    {unix.SYS_SOCKET, []uint64{unix.AF_ALG, unix.SOCK_SEQPACKET, 0}, eperm},
		"a family of tomorrow":   {unix.SYS_SOCKET, []uint64{99, unix.SOCK_STREAM, 0}, eperm},
		"fork":                   {unix.SYS_CLONE, []uint64{uint64(unix.SIGCHLD)}, allow},
		"a thread":               {unix.SYS_CLONE, []uint64{unix.CLONE_VM | unix.CLONE_THREAD | unix.CLONE_SIGHAND}, allow},
		"a user namespace":       {unix.SYS_CLONE, []uint64{unix.CLONE_NEWUSER | uint64(unix.SIGCHLD)}, eperm},
		"to unshare users":       {unix.SYS_UNSHARE, []uint64{unix.CLONE_NEWUSER | unix.CLONE_NEWNET}, eperm},
		"to unshare files":       {unix.SYS_UNSHARE, []uint64{unix.CLONE_FS}, allow},
		"clone3":                 {unix.SYS_CLONE3, nil, enosys},
		"sendto":                 {unix.SYS_SENDTO, []uint64{3, 0, 0, unix.MSG_NOSIGNAL}, allow},
		"sendto that connects":   {unix.SYS_SENDTO, []uint64{3, 0, 0, fastOpen | unix.MSG_NOSIGNAL}, eperm},
		"sendmsg":                {unix.SYS_SENDMSG, []uint64{3, 0, unix.MSG_NOSIGNAL}, allow},
		"sendmsg that connects":  {unix.SYS_SENDMSG, []uint64{3, 0, fastOpen}, eperm},
		"sendmmsg that connects": {unix.SYS_SENDMMSG, []uint64{3, 0, 1, fastOpen}, eperm},
		"connecting":             {unix.SYS_CONNECT, []uint64{3, 0, 16}, allow},
		"a source route":         {unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_OPTIONS, 0, 11}, eperm},
		"a service of packets":   {unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_IP, unix.IP_TOS, 0, 4}, allow},
		"smc on top of tcp":      {unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_ULP, 0, 3}, eperm},
		"sending at once":        {unix.SYS_SETSOCKOPT, []uint64{3, unix.IPPROTO_TCP, unix.TCP_NODELAY, 0, 4}, allow},
		"another level":          {unix.SYS_SETSOCKOPT, []uint64{3, unix.SOL_SOCKET, unix.TCP_ULP, 0, 4}, allow},
		"io_uring":               {unix.SYS_IO_URING_SETUP, nil, eperm},
		"bpf":                    {unix.SYS_BPF, nil, eperm},
		"keyctl":                 {unix.SYS_KEYCTL, nil, eperm},
		"setns":                  {unix.SYS_SETNS, nil, eperm},
		"own limits":             {unix.SYS_PRLIMIT64, []uint64{0, unix.RLIMIT_NOFILE, 0x7fff_0000_1000, 0}, allow},
		"limits of another":      {unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0x7fff_0000_1000, 0}, eperm},
		"limits, low half 0":     {unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0x7fff_0000_0000, 0}, eperm},
		"limits, high half 0":    {unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0x1000, 0}, eperm},
		"reading limits":         {unix.SYS_PRLIMIT64, []uint64{1, unix.RLIMIT_NOFILE, 0, 0x7fff_0000_1000}, allow},
		"own priority":           {unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 0, 19}, allow},
		"priority of the group":  {unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PGRP, 0, 19}, allow},
		"priority of a group":    {unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PGRP, 1, 19}, eperm},
		"priority of another":    {unix.SYS_SETPRIORITY, []uint64{unix.PRIO_PROCESS, 1, 19}, eperm},
		"priority of a user":     {unix.SYS_SETPRIORITY, []uint64{unix.PRIO_USER, 0, 19}, eperm},
		"high bits of a user":    {unix.SYS_SETPRIORITY, []uint64{1<<32 | unix.PRIO_USER, 0, 19}, eperm},
		"own disk priority":      {unix.SYS_IOPRIO_SET, []uint64{1, 0, 3 << 13}, allow},
		"disk priority, another": {unix.SYS_IOPRIO_SET, []uint64{1, 1, 3 << 13}, eperm},
		"disk priority, user":    {unix.SYS_IOPRIO_SET, []uint64{3, 0, 3 << 13}, eperm},
		"own processors":         {unix.SYS_SCHED_SETAFFINITY, []uint64{0, 8, 0x1000}, allow},
		"processors of another":  {unix.SYS_SCHED_SETAFFINITY, []uint64{1, 8, 0x1000}, eperm},
		"scheduling of another":  {unix.SYS_SCHED_SETSCHEDULER, []uint64{1, 5, 0x1000}, eperm},
		"parameters of another":  {unix.SYS_SCHED_SETPARAM, []uint64{1, 0x1000}, eperm},
		"attributes of another":  {unix.SYS_SCHED_SETATTR, []uint64{1, 0x1000, 0}, eperm},
		"memory of another":      {unix.SYS_MIGRATE_PAGES, []uint64{1, 0, 0, 0}, eperm},
		"pages of another":       {unix.SYS_MOVE_PAGES, []uint64{1, 0, 0, 0, 0, 0}, eperm},
		"pages of its own":       {unix.SYS_MOVE_PAGES, []uint64{0, 0, 0, 0, 0, 0}, allow},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ask(t, code, arch, tc.number, tc.args...); got != tc.want {
				t.Errorf("%#x, want %#x", got, tc.want)
			}
			if got := ask(t, code, unix.AUDIT_ARCH_I386, tc.number, tc.args...); got != eperm {
				t.Errorf("in another architecture: %#x", got)
			}
		})
	}
	if arch == unix.AUDIT_ARCH_X86_64 {
		if got := ask(t, code, arch, 0x40000000+unix.SYS_READ); got != eperm {
			t.Errorf("in the x32 ABI: %#x", got)
		}
	}
	if len(code) > unix.BPF_MAXINSNS {
		t.Errorf("%d instructions", len(code))
	}
}
