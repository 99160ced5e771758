//go:build linux

package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Applied is which parts of the confinement are in force. A nil error means that a
// part is.
type Applied struct {
	Privileges error // no_new_privs
	Filter     error // seccomp
	Landlock   error
	ABI        int   // of Landlock whose rights are restricted; zero: the kernel has none
	Lowered    error // why ABI is lower than the kernel reports; nil: it is not

	// Connects, of a private thread, has to be served for commands to connect at all. It is
	// nil if that is not possible, for which Offline has the reason.
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

// Private is what commands may use of a machine that is not theirs alone. They may listen on
// no port, and connect to what Connects allows.
type Private struct {
	// Writable are directories that they may read and change.
	Writable []string
	// Readable are files and directories that they may read and execute. One that does not
	// exist is skipped.
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

// PrivateThread confines the calling thread like Thread, but to what is listed. It never
// applies a part only: if one fails, the error says so and nothing may be started.
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
