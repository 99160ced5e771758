package files

import (
	"context"
	"encoding/json"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

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
