//go:build linux

package confine

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// x32 is the bit of system calls of the x32 ABI, which share the architecture.
const x32 = 0x40000000

// foreign refuses system calls of other ABIs.
func (p *program) foreign() { p.atLeast(x32, p.fail(unix.EPERM)) }
