//go:build linux

package confine

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Applied is what of the confinement the kernel took. An error that is nil means
// that it did.
type Applied struct {
	Privileges error // no_new_privs
	Filter     error // seccomp
	Landlock   error
	ABI        int // of Landlock; zero: the kernel has none
}

// Thread confines the calling thread, which has to be locked to its goroutine
// for good. What lies beneath protect cannot be changed from then on. It goes as
// far as the kernel does.
func Thread(protect string) Applied {
	var a Applied
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		// Neither of the others is to be had without.
		a.Privileges = fmt.Errorf("setting no_new_privs: %w", err)
		a.Filter, a.Landlock = a.Privileges, a.Privileges
		return a
	}
	a.ABI, a.Landlock = restrict(protect) // first: the filter may know nothing of it
	a.Filter = install(filter())
	return a
}
