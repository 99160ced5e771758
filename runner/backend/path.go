package backend

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// The maximum length of a path and of a name, in bytes, as in Linux.
const (
	maxPath = 4096
	maxName = 255
)

// Clean returns the path as backends use it, relative, without "." and empty segments. The error describes why no
// backend accepts the path. It checks only the text; the backend handles links.
//
// ".." is refused even where it would stay inside, since what it means depends on links; so is a leading "~", which
// models use for a home directory.
func Clean(name string) (string, error) {
	switch {
	case len(name) > maxPath:
		return "", &PathError{Op: "resolve", Path: name[:80] + "…", Err: ErrBadName}
	case strings.ContainsRune(name, 0):
		return "", &PathError{Op: "resolve", Path: name, Err: ErrBadName}
	case strings.HasPrefix(name, "/"), strings.HasPrefix(path.Clean(name), "~"), climbs(name):
		return "", &PathError{Op: "resolve", Path: name, Err: ErrEscapes}
	case len(name) > maxName && slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxName }):
		return "", &PathError{Op: "resolve", Path: name, Err: ErrBadName}
	}
	return path.Clean(name), nil
}

// climbs reports whether a component of the path is "..", written with slashes
// of either kind.
func climbs(name string) bool {
	return strings.Contains(name, "..") && slices.Contains(strings.FieldsFunc(name, func(c rune) bool { return c == '/' || c == '\\' }), "..")
}

// Compare orders paths as a tree is read: directory by directory, and the names within one by their bytes. The entries
// of "a" come before "a-b".
func Compare(a, b string) int {
	for {
		headA, restA, moreA := strings.Cut(a, "/")
		headB, restB, moreB := strings.Cut(b, "/")
		if c := cmp.Compare(headA, headB); c != 0 {
			return c
		}
		switch {
		case !moreA && !moreB:
			return 0
		case !moreA:
			return -1
		case !moreB:
			return 1
		}
		a, b = restA, restB
	}
}
