package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// discardInput discards unread input of a terminal.
func discardInput(terminal *os.File) {
	_ = unix.IoctlSetInt(int(terminal.Fd()), unix.TCFLSH, unix.TCIFLUSH) // fails if it is no terminal
}
