package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardInput discards unread input of a console.
func discardInput(console *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(console.Fd())) // fails if it is no console
}
