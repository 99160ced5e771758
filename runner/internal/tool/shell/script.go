package shell

import (
	"bytes"
	"path"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// maxCommand is how long a command line may be. The kernel takes no argument of
// more than 128 KiB.
const maxCommand = 100_000

// maxDir bounds what is believed to be a directory.
const maxDir = 4096

// script runs the command line that is its first argument, and writes the
// directory that it ends in, and a NUL, to its file descriptor 3. The command
// does not have that descriptor: what it writes to 3 is its own affair. A
// command that exits runs the trap; one with a trap of its own is told about by
// the last lines.
const script = `exec 2>&1 </dev/null; export TERM="${TERM:-dumb}" PAGER="${PAGER:-cat}" GIT_PAGER="${GIT_PAGER:-cat}" GIT_TERMINAL_PROMPT=0; ` +
	`trap '{ printf "%s\0" "$PWD" >&3; } 2>/dev/null' EXIT; ` +
	`eval "shift; $1" 3>&-; ` +
	`set -- $?; printf '%s\0' "$PWD" >&3; exit "$1"`

// program is what has a shell run a command line in a directory.
func program(shell, line, dir string) sandbox.Command {
	return sandbox.Command{
		Args: []string{shell, "-c", script, path.Base(shell), line},
		Dir:  dir,
		Env:  map[string]string{"PWD": dir},
	}
}

// A heard is what came on a command's file descriptor 3.
type heard struct{ data []byte }

func (h *heard) write(p []byte) {
	const most = 2 * (maxDir + 1) // the last one is whole
	h.data = append(h.data, p[max(0, len(p)-most):]...)
	h.data = h.data[max(0, len(h.data)-most):]
}

// dir is the last directory that was told of; empty: none that can be one.
func (h *heard) dir() string {
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
