package files

import (
	"cmp"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// A View is how a model knows the files of a backend. Its paths are absolute
// and clean.
type View struct {
	// Root is what the model calls the root of the backend; empty: "/".
	Root string
	// Home is where relative paths begin, and where the work is: what is changed
	// elsewhere is not counted as changed. Empty: the Root.
	Home string
	// Places are the directories that the model is shown; empty: only Root.
	Places []string
}

func (v View) clean() View {
	v.Root = path.Clean("/" + v.Root)
	v.Home = path.Clean("/" + cmp.Or(v.Home, v.Root))
	if len(v.Places) == 0 {
		v.Places = []string{v.Root}
	}
	return v
}

// Ways in which a path is not one of ours; words.go says them.
var (
	errWindows = errors.New("is a path of Windows")
	errOutside = errors.New("is not below the root")
	errClimbs  = errors.New("goes up")
)

// resolve turns a path as the model writes it, absolute below the root or
// relative to home, into the backend's.
func (v View) resolve(name string) (string, error) {
	// What backends refuse is refused here for the whole path: one that leaves
	// the root and comes back is not let through because of where it ends.
	_, err := backend.Clean(strings.TrimLeft(name, "/"))
	switch {
	case errors.Is(err, backend.ErrEscapes):
		return "", errClimbs
	case err != nil:
		return "", err
	case driveLetter(name):
		return "", errWindows
	}
	full := path.Clean(name)
	if !path.IsAbs(name) {
		full = path.Join(v.Home, name)
	}
	if !within(v.Root, full) {
		return "", errOutside
	}
	return v.below(full), nil
}

// within reports whether a clean path is dir or below it.
func within(dir, name string) bool {
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}

// below is the backend's path of a clean one below the root.
func (v View) below(full string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(full, v.Root), "/"))
}

// name is what the model calls a path of the backend.
func (v View) name(at string) string { return path.Join(v.Root, at) }

// deepestDir is the deepest of the places that a path belongs to.
func (v View) deepestDir(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(v.Home, name)
	}
	best := v.Root
	for _, p := range v.Places {
		if within(p, path.Clean(name)) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// pattern turns a pattern and a directory as the model writes them into the
// backend's. A pattern that begins with a place says its directory itself.
func (v View) pattern(pattern, dir string) (glob, at string, err error) {
	for _, p := range v.Places {
		if p != "/" && strings.HasPrefix(pattern, p+"/") {
			return strings.TrimPrefix(pattern, strings.TrimSuffix(v.Root, "/")), ".", nil
		}
	}
	at, err = v.resolve(dir)
	return pattern, at, err
}

func driveLetter(name string) bool {
	return len(name) >= 2 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}

// label is the name of a path in a list. One that would break the line, or
// write to a terminal, is quoted.
func (v View) label(at string) string {
	name := strings.ToValidUTF8(v.name(at), string(utf8.RuneError))
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// split moves the directories at the start of a pattern to the path where the
// search begins. What is left is anchored there. Escaped patterns stay as they
// are.
func (v View) split(dir, pattern string) (at, rest string, err error) {
	if err := backend.CheckGlob(pattern); err != nil {
		return "", "", err
	}
	inner := strings.TrimLeft(strings.TrimPrefix(pattern, "./"), "/")
	placed := slices.ContainsFunc(v.Places, func(p string) bool { return p != "/" && strings.HasPrefix(pattern, p+"/") })
	if placed {
		dir = v.Root
	}
	if strings.HasSuffix(inner, "/") { // a directory is meant: all that is in it
		inner += "**"
	}
	if strings.Contains(pattern, `\`) {
		return dir, pattern, nil
	}
	base, last := doublestar.SplitPattern(inner)
	if base == "." {
		return dir, pattern, nil
	}
	if _, err := v.resolve(dir); err != nil { // before it is joined: joining would hide what it says
		return "", "", err
	}
	if placed {
		dir = "/"
	}
	if !path.IsAbs(dir) {
		dir = path.Join(v.Home, dir)
	}
	return path.Join(dir, base), "/" + last, nil
}
