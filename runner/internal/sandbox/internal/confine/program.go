//go:build linux

package confine

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Where struct seccomp_data has what a filter looks at. Arguments have 64 bits;
// the lower half, which is first on the machines that there are, is what the
// kernel takes of those that are looked at.
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

// load fetches a word of what the filter is asked about.
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

// fail is a block that refuses.
func (*program) fail(e syscall.Errno) func(*program) {
	return func(p *program) { p.refuse(e) }
}

// when runs a block, which has to end the program, if the word is k.
func (p *program) when(k uint32, block func(*program)) {
	p.guard(unix.BPF_JEQ, k, block)
}

// unless runs it if the word is not k.
func (p *program) unless(k uint32, block func(*program)) {
	at := p.guard(unix.BPF_JEQ, k, block)
	p.code[at].Jt, p.code[at].Jf = p.code[at].Jf, p.code[at].Jt
}

// atLeast runs it if the word is k or more.
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
