package terminal

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardInput drops what was typed into a console and not yet read.
func discardInput(console *os.File) {
	_ = windows.FlushConsoleInputBuffer(windows.Handle(console.Fd())) // fails if it is no console
}
