// Package terminaltest has a user at a terminal, for tests.
package terminaltest

import (
	"bytes"
	"io"
	"strings"
)

// AnswerAt types a line when a question is on the screen, and returns all that was on it.
func AnswerAt(screen io.ReadWriter, question, line string) string {
	var all bytes.Buffer
	answered := false
	chunk := make([]byte, 4096)
	for {
		n, err := screen.Read(chunk)
		all.Write(chunk[:n])
		if !answered && strings.Contains(all.String(), question) {
			answered = true
			_, _ = io.WriteString(screen, line)
		}
		if err != nil { // the terminal was closed
			return all.String()
		}
	}
}
