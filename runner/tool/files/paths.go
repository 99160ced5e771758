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
// relative to it, into the backend's.
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
	case !path.IsAbs(name):
		return path.Clean(name), nil
	}
	rest, ok := strings.CutPrefix(path.Clean(name)+"/", t.prefix())
	if !ok {
		return "", errOutside
	}
	return path.Clean(rest), nil
}

// prefix is what the absolute name of everything below the root begins with.
func (t *Toolset) prefix() string { return strings.TrimSuffix(t.root, "/") + "/" }

// name is what the model calls a path of the backend.
func (t *Toolset) name(at string) string { return path.Join(t.root, at) }

// pattern turns a pattern and a directory as the model writes them into the
// backend's. An absolute pattern says its directory itself.
func (t *Toolset) pattern(pattern, dir string) (glob, at string, err error) {
	if rest, ok := strings.CutPrefix(pattern, t.prefix()); ok {
		return "/" + rest, ".", nil
	}
	at, err = t.resolve(dir)
	return pattern, at, err
}

func driveLetter(name string) bool {
	return len(name) >= 2 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}
