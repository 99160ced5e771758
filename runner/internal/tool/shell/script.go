package shell

import (
	"bytes"
	"path"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// maxCommand bounds a command line in bytes. The kernel's bound for an argument is
// 128 KiB.
const maxCommand = 100_000

// maxDir bounds the path of a directory.
const maxDir = 4096

// script runs the command line in its first argument, and writes the final working
// directory and a NUL to file descriptor 3. The command does not have that
// descriptor. If the command exits, the trap writes; if the command sets its own
// trap, the last line writes.
const script = `exec 2>&1 </dev/null; export TERM="${TERM:-dumb}" PAGER="${PAGER:-cat}" GIT_PAGER="${GIT_PAGER:-cat}" GIT_TERMINAL_PROMPT=0; ` +
	`trap '{ printf "%s\0" "$PWD" >&3; } 2>/dev/null' EXIT; ` +
	`eval "shift; $1" 3>&-; ` +
	`set -- $?; printf '%s\0' "$PWD" >&3; exit "$1"`

// program returns the command that runs a command line in a directory.
func program(shell, line, dir string) sandbox.Command {
	return sandbox.Command{
		Args: []string{shell, "-c", script, path.Base(shell), line},
		Dir:  dir,
		Env:  map[string]string{"PWD": dir},
	}
}

// A controlReader keeps the end of what a command wrote to file descriptor 3.
type controlReader struct{ data []byte }

func (h *controlReader) write(p []byte) {
	const most = 2 * (maxDir + 1) // the last one is complete
	h.data = append(h.data, p[max(0, len(p)-most):]...)
	h.data = h.data[max(0, len(h.data)-most):]
}

// dir returns the last directory that was written; empty if it is not valid.
func (h *controlReader) dir() string {
	rest, ok := bytes.CutSuffix(h.data, []byte{0})
	if !ok {
		return ""
	}
	dir := string(rest[bytes.LastIndexByte(rest, 0)+1:])
	if !path.IsAbs(dir) || len(dir) > maxDir || !utf8.ValidString(dir) {
		return ""
	}
	return path.Clean(dir)
}
