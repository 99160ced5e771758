//go:build linux

package confine

import "golang.org/x/sys/unix"

// ofSelf are the system calls that change the process or thread whose number is
// their first argument, where 0 is the caller. The kernel allows them between
// processes of one user, whatever Landlock says.
var ofSelf = []uint32{
	unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
}

// What setpriority and ioprio_set call all processes of a user.
const (
	prioUser   = 2 // PRIO_USER
	ioprioUser = 3 // IOPRIO_WHO_USER
)

// ownResources refuses to change the limits, priority, scheduling and memory of
// other processes: the server runs as the same user. A filter cannot know the
// number of the caller, so that a process that names itself by it is refused too.
//
// Other system calls that name a process need no rule. The kernel asks Landlock
// about signals, however they are sent, and whether the caller may trace the
// process for ptrace, process_vm_readv, process_vm_writev, process_madvise,
// pidfd_getfd, kcmp and prctl(PR_SCHED_CORE); the server and supervisors are not
// dumpable. setpgid takes children only, and process_mrelease what is ending.
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

// priorities allows a call (which, who, priority) about the caller or its process
// group, in which nothing else is.
func priorities(p *program, user uint32) {
	p.load(offArgs)
	p.when(user, p.fail(unix.EPERM))
	p.load(offArgs + argSize)
	p.unless(0, p.fail(unix.EPERM))
	p.allow()
}
