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
	ABI        int // of Landlock; zero: the kernel has none
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
	a.ABI, a.Landlock = restrict(protect) // before the filter, which may refuse the system calls of Landlock
	a.Filter = install(filter())
	return a
}
