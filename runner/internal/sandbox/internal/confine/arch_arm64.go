//go:build linux

package confine

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_AARCH64

// foreign refuses system calls of other ABIs; here they are another architecture.
func (*program) foreign() {}
