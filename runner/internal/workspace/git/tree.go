package git

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
)

// An entry is one name in a tree.
type entry struct {
	name string
	mode filemode.FileMode
	hash plumbing.Hash
}

// tree reads the entries of a tree; of the zero hash none.
func (s *Store) tree(h plumbing.Hash) ([]entry, error) {
	if h.IsZero() {
		return nil, nil
	}
	data, err := s.readAll(plumbing.TreeObject, h)
	if err != nil {
		return nil, err
	}
	entries, err := parseTree(data)
	if err != nil {
		return nil, Refused("The repository has a directory that is no tree of git (%s: %v): commit it again with git.", h, err)
	}
	return entries, nil
}

// parseTree reads what git writes: mode, space, name, NUL, hash, and the next.
func parseTree(data []byte) ([]entry, error) {
	var entries []entry
	for len(data) > 0 {
		head, rest, ok := bytes.Cut(data, []byte{0})
		mode, name, spaced := strings.Cut(string(head), " ")
		if !ok || !spaced || len(rest) < len(plumbing.ZeroHash) {
			return nil, fmt.Errorf("it is cut off or no tree")
		}
		bits, err := strconv.ParseUint(mode, 8, 32)
		if err != nil {
			return nil, fmt.Errorf("mode %q is no number", printable(mode))
		}
		e := entry{name: name, mode: filemode.FileMode(bits)}
		data = rest[copy(e.hash[:], rest):]
		entries = append(entries, e)
	}
	return entries, nil
}

// encodeTree writes the entries in git's order: as if a directory's name ended
// in a slash.
func encodeTree(entries []entry) []byte {
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.sorted(), b.sorted()) })
	var out bytes.Buffer
	for _, e := range entries {
		fmt.Fprintf(&out, "%o %s\x00", uint32(e.mode), e.name)
		out.Write(e.hash[:])
	}
	return out.Bytes()
}

func (e entry) sorted() string {
	if e.mode == filemode.Dir {
		return e.name + "/"
	}
	return e.name
}

// byName returns the entries by their names.
func byName(entries []entry) map[string]entry {
	names := make(map[string]entry, len(entries))
	for _, e := range entries {
		names[e.name] = e
	}
	return names
}

// isFile reports whether an entry is a regular file. Old trees have
// more modes than are written today.
func (e entry) isFile() bool {
	return e.mode == filemode.Regular || e.mode == filemode.Executable || e.mode == filemode.Deprecated
}
