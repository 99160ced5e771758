package git

import (
	"errors"
	"io"
	"iter"
	"os"
	"strings"
)

// namesPerRead is how many names of a directory are read at once.
const namesPerRead = 1024

// Names are those in an open directory, in no order, and as many as there may be
// without ever holding all of them. An error comes last.
func Names(dir *os.File) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := dir.ReadDir(namesPerRead)
		for ; err == nil; entries, err = dir.ReadDir(namesPerRead) {
			for _, e := range entries {
				if !yield(e.Name(), nil) {
					return
				}
			}
		}
		if !errors.Is(err, io.EOF) {
			yield("", err)
		}
	}
}

// isDotGit reports whether a name is that of a git directory, on any file system
// on which a user may check the commit out: in any case, with what Windows
// ignores at the end or takes for the same, and with the characters that macOS
// ignores.
func isDotGit(name string) bool {
	name, _, _ = strings.Cut(strings.Map(visible, name), ":") // .git::$INDEX_ALLOCATION
	name = strings.TrimRight(name, ". ")
	return strings.EqualFold(name, ".git") || strings.EqualFold(name, "git~1")
}

// visible drops what HFS+ does not compare.
func visible(r rune) rune {
	switch {
	case r >= 0x200c && r <= 0x200f, r >= 0x202a && r <= 0x202e, r >= 0x206a && r <= 0x206f, r == 0xfeff:
		return -1
	default:
		return r
	}
}

// isName reports whether a name of a tree may become one of a file.
func isName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\x00") && !isDotGit(name)
}

// depth returns how many parents a directory has.
func depth(dir string) int { return strings.Count(dir, "/") }
