package files

import (
	"errors"
	"path"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// Ways in which a path is not one of ours; words.go says them.
var (
	errWindows = errors.New("is a path of Windows")
	errOutside = errors.New("is not below the root")
	errClimbs  = errors.New("goes up")
)

// resolve turns a path as the model writes it, absolute below the root or
// relative to home, into the backend's.
func (t *Toolset) resolve(name string) (string, error) {
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
		full = path.Join(t.view.Home, name)
	}
	if !within(t.view.Root, full) {
		return "", errOutside
	}
	return t.below(full), nil
}

// within reports whether a clean path is dir or below it.
func within(dir, name string) bool {
	return dir == "/" || name == dir || strings.HasPrefix(name, dir+"/")
}

// below is the backend's path of a clean one below the root.
func (t *Toolset) below(full string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(full, t.view.Root), "/"))
}

// name is what the model calls a path of the backend.
func (t *Toolset) name(at string) string { return path.Join(t.view.Root, at) }

// place is the deepest of the places that a path belongs to.
func (t *Toolset) place(name string) string {
	if !path.IsAbs(name) {
		name = path.Join(t.view.Home, name)
	}
	best := t.view.Root
	for _, p := range t.view.Places {
		if within(p, path.Clean(name)) && len(p) > len(best) {
			best = p
		}
	}
	return best
}

// pattern turns a pattern and a directory as the model writes them into the
// backend's. A pattern that begins with a place says its directory itself.
func (t *Toolset) pattern(pattern, dir string) (glob, at string, err error) {
	for _, p := range t.view.Places {
		if p != "/" && strings.HasPrefix(pattern, p+"/") {
			return strings.TrimPrefix(pattern, strings.TrimSuffix(t.view.Root, "/")), ".", nil
		}
	}
	at, err = t.resolve(dir)
	return pattern, at, err
}

func driveLetter(name string) bool {
	return len(name) >= 2 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}
