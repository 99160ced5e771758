package files

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A View maps the paths that a model uses to paths of a backend. Its paths are absolute and clean.
type View struct {
	// Root is the model's path of the root of the backend; empty: "/".
	Root string
	// Home is the directory of relative paths, and of the work: changes elsewhere are not counted. Empty: the Root.
	Home string
	// Places are the directories that the model knows; empty: only Root.
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

// Reasons why a path is invalid; words.go describes them.
var (
	errWindows = errors.New("is a path of Windows")
	errOutside = errors.New("is not below the root")
	errClimbs  = errors.New("goes up")
)

// resolve returns the backend's path of a path that the model wrote, absolute or relative to Home.
func (v View) resolve(name string) (string, error) {
	// Invalid names are refused for the whole path before it is cleaned: a path that leaves the root and returns to it
	// is refused, too.
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

// below returns the backend's path of a clean path below the root.
func (v View) below(full string) string {
	return path.Clean(strings.TrimPrefix(strings.TrimPrefix(full, v.Root), "/"))
}

// name returns the model's path of a path of the backend.
func (v View) name(at string) string { return path.Join(v.Root, at) }

// deepestDir returns the deepest of the places that contains a path.
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

// pattern returns the backend's pattern and directory. A pattern that begins with a place has its own directory.
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

// label returns a path for a list. A path that would break the line, or control a terminal, is quoted.
func (v View) label(at string) string {
	name := strings.ToValidUTF8(v.name(at), string(utf8.RuneError))
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// split moves the directories at the start of a pattern to the path where the search begins. The rest is anchored
// there. Patterns with escapes stay unchanged.
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

// canonicalPath returns the canonical form of the arguments of a tool that takes a path: absolute and clean, with the
// links resolved. A missing path is the view's Home.
func (t *Toolset) canonicalPath(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, &tool.Error{Message: err.Error()}
	}
	return t.set(ctx, args, in.Path, map[string]string{})
}

// canonicalGlob is canonicalPath for Glob. The directory at the start of its pattern becomes part of the path, so that
// policies see where it searches.
func (t *Toolset) canonicalGlob(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in globIn
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, &tool.Error{Message: err.Error()}
	}
	dir, pattern, err := t.view.split(in.Path, in.Pattern)
	if err != nil {
		return nil, t.view.refused(in.Path, err)
	}
	return t.set(ctx, args, dir, map[string]string{"pattern": pattern})
}

// canonicalGrep is canonicalGlob for the glob of Grep, if it has one.
func (t *Toolset) canonicalGrep(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in grepIn
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, &tool.Error{Message: err.Error()}
	}
	if in.Glob == "" {
		return t.set(ctx, args, in.Path, map[string]string{})
	}
	dir, glob, err := t.view.split(in.Path, in.Glob)
	if err != nil {
		return nil, t.view.refused(in.Path, err)
	}
	return t.set(ctx, args, dir, map[string]string{"glob": glob})
}

// set sets the canonical path and the other arguments.
func (t *Toolset) set(ctx context.Context, args json.RawMessage, name string, rest map[string]string) (json.RawMessage, *tool.Error) {
	canonical, err := t.canonical(ctx, name)
	if err != nil {
		return nil, t.view.refused(name, err)
	}
	rest["path"] = canonical
	return tool.SetArgs(args, rest), nil
}

// canonical returns the canonical name of the file that a path leads to.
func (t *Toolset) canonical(ctx context.Context, name string) (string, error) {
	at, err := t.view.resolve(name)
	if err != nil {
		return "", err
	}
	resolved, err := t.backend.Resolve(ctx, at)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(resolved) { // a link leads there; arguments cannot name it
		return "", &backend.PathError{Op: "resolve", Path: name, Err: backend.ErrBadName}
	}
	return t.view.name(resolved), nil
}

// refused returns why arguments have no canonical form.
func (v View) refused(name string, err error) *tool.Error {
	result, err := v.failed(name, err)
	if err != nil { // the context has ended
		return &tool.Error{Message: err.Error()}
	}
	return result.Error
}
