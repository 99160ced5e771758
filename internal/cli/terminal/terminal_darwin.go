package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput drops what was typed into a terminal and not yet read.
func discardInput(terminal *os.File) {
	_ = unix.IoctlSetPointerInt(int(terminal.Fd()), unix.TIOCFLUSH, unix.TCIFLUSH) // fails if it is no terminal
}
