//go:build linux

package confine

import (
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"
)

// Applied reports which parts of the confinement are in force. A part is in force if its error is nil.
type Applied struct {
	Privileges error // no_new_privs
	Filter     error // seccomp
	Landlock   error
	ABI        int   // of Landlock whose rights are restricted; zero: the kernel has none
	Lowered    error // why ABI is lower than the kernel reports; nil: it is not

	// Connects of a private thread must be served for commands to connect at all. It is nil if that is not possible,
	// for which Offline has the reason.
	Connects *Connects
	Offline  error
}

// Thread confines the calling thread, which must stay locked to its goroutine. From
// then on it cannot change files below protect. It applies each part that the kernel
// supports.
func Thread(protect string) Applied {
	var a Applied
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		// The other parts require it.
		a.Privileges = fmt.Errorf("setting no_new_privs: %w", err)
		a.Filter, a.Landlock = a.Privileges, a.Privileges
		return a
	}
	a.ABI, a.Lowered, a.Landlock = running.confine(func(abi int) rules { return protecting(protect, abi) }) // before the filter, which may refuse the system calls of Landlock
	_, a.Filter = install(filter(restrictions{}), 0)
	return a
}

// Private lists what commands may use on a machine that they share with other programs. They may listen on no port, and
// connect only to what Connects allows.
type Private struct {
	// Writable are directories that they may read and change.
	Writable []string
	// Readable are the files and directories that they may read and execute. Missing ones are skipped.
	Readable []string
}

// dropCapabilities takes its capabilities from this thread. A user root has them, and
// CAP_PERFMON reads the environment of any process without asking Landlock. With no_new_privs
// an executed program does not get them again.
func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return fmt.Errorf("dropping capabilities: %w", err)
	}
	return nil
}

// PrivateThread confines the calling thread like Thread, and also to the listed resources. It is all or nothing: if a
// part cannot be applied, it returns an error and nothing may be started.
func PrivateThread(p Private) Applied {
	var a Applied
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		a.Privileges = fmt.Errorf("setting no_new_privs: %w", err)
		return a
	}
	if err := dropCapabilities(); err != nil {
		a.Privileges = err
		return a
	}
	a.ABI, a.Lowered, a.Landlock = running.confine(p.rules)
	a.Connects, a.Offline, a.Filter = installPrivate(restrictions{unbound: a.ABI < abiNetwork})
	return a
}

// Offsets of the fields of struct seccomp_data that a filter reads. Arguments have 64 bits, of which the lower half
// comes first on all supported machines. The kernel uses only that half of the arguments that are checked.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
	argSize   = 8
)

// A program is a filter being written. A condition is followed by the block that
// it guards, so that jumps lead forward by the length of the block.
type program struct{ code []unix.SockFilter }

func (p *program) add(code uint16, k uint32) {
	p.code = append(p.code, unix.SockFilter{Code: code, K: k})
}

// load loads a word of the seccomp_data.
func (p *program) load(offset uint32) { p.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset) }

// mask leaves some bits of the word.
func (p *program) mask(bits uint32) { p.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, bits) }

// allow ends with yes.
func (p *program) allow() { p.add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ALLOW) }

// notify ends with an answer of the process that has the listener.
func (p *program) notify() { p.add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_USER_NOTIF) }

// refuse ends with an error.
func (p *program) refuse(e syscall.Errno) {
	p.add(unix.BPF_RET|unix.BPF_K, unix.SECCOMP_RET_ERRNO|uint32(e)) //nolint:gosec // errors are small
}

// fail returns a block that refuses a call with an error.
func (*program) fail(e syscall.Errno) func(*program) {
	return func(p *program) { p.refuse(e) }
}

// when runs a block, which has to end the program, if the word is k.
func (p *program) when(k uint32, block func(*program)) {
	p.guard(unix.BPF_JEQ, k, block)
}

// unless runs a block if the word is not k.
func (p *program) unless(k uint32, block func(*program)) {
	at := p.guard(unix.BPF_JEQ, k, block)
	p.code[at].Jt, p.code[at].Jf = p.code[at].Jf, p.code[at].Jt
}

// atLeast runs a block if the word is k or more.
func (p *program) atLeast(k uint32, block func(*program)) {
	p.guard(unix.BPF_JGE, k, block)
}

// refuseBits ends the program: an argument with one of the bits is refused.
func (p *program) refuseBits(offset, bits uint32) {
	p.load(offset)
	p.guard(unix.BPF_JSET, bits, p.fail(unix.EPERM))
	p.allow()
}

// guard writes a condition and its block, which is skipped if it does not hold.
func (p *program) guard(test uint16, k uint32, block func(*program)) int {
	at := len(p.code)
	p.add(unix.BPF_JMP|test|unix.BPF_K, k)
	block(p)
	p.code[at].Jf = uint8(len(p.code) - at - 1) //nolint:gosec // blocks are short; a test runs them all
	return at
}

// abiDevices is the version of Landlock that restricts ioctl on devices.
const abiDevices = 5

// Rights to read and execute, the ones of these that apply to files, and rights to create devices.
const (
	reads       = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE | unix.LANDLOCK_ACCESS_FS_READ_DIR
	readsOfFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	devices     = unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK
)

// harmless are the devices that programs expect. A terminal is not one of them: it is the
// user's own.
var harmless = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// rules returns the rules of a version of Landlock.
func (p Private) rules(abi int) rules {
	attr := handled(abi)
	attr.Handled_access_fs |= reads
	if abi >= abiDevices {
		attr.Handled_access_fs |= unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	}
	return rules{attr: attr, allow: func(ruleset int) error {
		var unknown []error
		allow := func(paths []string, access, ofFile uint64) {
			for _, path := range paths {
				unknown = append(unknown, allowPath(ruleset, access, ofFile, path))
			}
		}
		allow(p.Writable, attr.Handled_access_fs&^devices, readsOfFile|ofFiles)
		allow(p.Readable, reads, readsOfFile)
		allow(harmless, attr.Handled_access_fs, readsOfFile|attr.Handled_access_fs&ofFiles)
		return errors.Join(unknown...) // no port: the server connects for commands
	}}
}

// ofSelf are the system calls that change the process or thread whose number is their first argument, where 0 is the
// caller. The kernel allows them between processes of one user, independently of Landlock.
var ofSelf = []uint32{
	unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
}

// Values of the argument which of setpriority and ioprio_set for all processes of a user. 0 is a process, and the value
// between is a process group.
const (
	prioUser   = 2 // PRIO_USER
	ioprioUser = 3 // IOPRIO_WHO_USER
)

// ownResources refuses to change the limits, priority, scheduling and memory of other processes: the server runs as the
// same user. A filter does not know the number of the caller, so a process that passes its own number is refused too.
//
// Other system calls that name a process need no rule. The kernel asks Landlock about signals, however they are sent,
// and whether the caller may trace the process for ptrace, process_vm_readv, process_vm_writev, process_madvise,
// pidfd_getfd, kcmp and prctl(PR_SCHED_CORE); the server and supervisors are not dumpable. setpgid accepts only
// children, and process_mrelease only processes that are ending.
func ownResources(p *program) {
	for _, call := range ofSelf {
		p.when(call, func(p *program) {
			p.load(offArgs)
			p.when(0, (*program).allow)
			p.refuse(unix.EPERM)
		})
	}
	p.when(unix.SYS_PRLIMIT64, limits)
	p.when(unix.SYS_SETPRIORITY, func(p *program) { priorities(p, prioUser) })
	p.when(unix.SYS_IOPRIO_SET, func(p *program) { priorities(p, ioprioUser) })
}

// limits allows prlimit64(pid, resource, new, old) where pid is 0, or new is a
// null pointer: it reads then.
func limits(p *program) {
	p.load(offArgs)
	p.when(0, (*program).allow)
	for _, half := range []uint32{0, argSize / 2} {
		p.load(offArgs + 2*argSize + half)
		p.unless(0, p.fail(unix.EPERM))
	}
	p.allow()
}

// priorities allows a call (which, who, priority) only for the caller or its own process group.
func priorities(p *program, user uint32) {
	p.load(offArgs)
	p.when(user, p.fail(unix.EPERM))
	p.load(offArgs + argSize)
	p.unless(0, p.fail(unix.EPERM))
	p.allow()
}
