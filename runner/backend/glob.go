package backend

import (
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// Alternatives are tried in all their combinations, so their number is bounded: a match cannot be interrupted and must
// not take long.
const (
	maxBraces = 6
	maxCommas = 32
)

var (
	errTooLong  = errors.New("it is too long")
	errTooBroad = errors.New("it has too many alternatives in braces")
)

// A glob matches the paths of files, relative to where the search starts.
//
// A pattern without a slash matches the base name, at any depth; with a slash it matches the whole path, and a leading
// slash anchors a name. "**" matches any directories. As in a shell, a name that begins with a dot matches only a
// pattern that begins with a dot.
type glob struct {
	pattern string
	bare    bool
	start   string // the directory above everything that the pattern matches
}

// CheckGlob returns why Glob does not take a pattern, or nil.
func CheckGlob(pattern string) error {
	_, err := compileGlob(pattern)
	return err
}

// compileGlob checks a pattern. The empty pattern matches every path.
func compileGlob(pattern string) (*glob, error) {
	if strings.ContainsRune(pattern, 0) || hasUp(pattern) {
		return nil, &PatternError{Pattern: pattern, Err: ErrEscapes}
	}
	if err := checkGlob(pattern); err != nil {
		return nil, &PatternError{Pattern: pattern, Err: err}
	}
	g := &glob{pattern: strings.TrimPrefix(pattern, "./"), bare: !strings.Contains(pattern, "/"), start: "."}
	g.pattern = strings.TrimLeft(g.pattern, "/")
	if strings.HasSuffix(g.pattern, "/") { // a directory is meant: all that is in it
		g.pattern += "**"
	}
	if strings.HasSuffix(g.pattern, "/**") { // not the file that has the name of the directory
		g.pattern += "/*"
	}
	if !g.bare && !strings.Contains(g.pattern, `\`) {
		g.start, _ = doublestar.SplitPattern(g.pattern)
	}
	return g, nil
}

func checkGlob(pattern string) error {
	switch {
	case len(pattern) > MaxPattern:
		return errTooLong
	case strings.Count(pattern, "{") > maxBraces, strings.Count(pattern, ",") > maxCommas:
		return errTooBroad
	case !doublestar.ValidatePattern(pattern):
		return doublestar.ErrBadPattern
	}
	return nil
}

// hasUp reports whether a component of the pattern is "..", also as an
// alternative in braces.
func hasUp(pattern string) bool {
	parts := strings.FieldsFunc(pattern, func(r rune) bool { return strings.ContainsRune(`/\{},`, r) })
	return slices.Contains(parts, "..")
}

// match reports whether the pattern matches a path.
func (g *glob) match(name string) bool {
	if g.pattern == "" {
		return true
	}
	if g.bare {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(g.pattern, name) && g.matchesHidden(name)
}

// matchesHidden reports whether the pattern has a component with a leading dot for each component of the path with a
// leading dot.
func (g *glob) matchesHidden(name string) bool {
	if !strings.HasPrefix(name, ".") && !strings.Contains(name, "/.") {
		return true
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && !g.matchesHiddenPart(part) {
			return false
		}
	}
	return true
}

func (g *glob) matchesHiddenPart(part string) bool {
	for own := range strings.SplitSeq(g.pattern, "/") {
		hidden := strings.HasPrefix(own, ".") || strings.Contains(own, "{.") || strings.Contains(own, ",.")
		if hidden && doublestar.MatchUnvalidated(own, part) {
			return true
		}
	}
	return false
}
