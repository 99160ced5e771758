package composite

import (
	"errors"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// maxPatterns is how many patterns one may become below a mount: each is a
// search of its own.
const maxPatterns = 16

var errTooBroad = errors.New("it says too many ways to the existing places; search one of them")

// below returns the patterns that, in a mount at a path below the place where a
// search starts, find what the pattern finds there; none when it finds nothing.
func below(pattern, mount string) ([]string, error) {
	if !strings.Contains(pattern, "/") { // for the base name, wherever it is
		return []string{pattern}, nil
	}
	var all []string
	spelled, err := spell(pattern)
	if err != nil {
		return nil, err
	}
	for _, one := range spelled {
		for _, rest := range remainders(one, strings.Split(mount, "/")) {
			if !slices.Contains(all, rest) {
				all = append(all, rest)
			}
		}
	}
	if len(all) > maxPatterns {
		return nil, &backend.PatternError{Pattern: pattern, Err: errTooBroad}
	}
	return all, nil
}

// remainders walks down a path along a pattern without alternatives that have a
// slash, and returns what may follow, anchored.
func remainders(pattern string, names []string) []string {
	pattern = strings.TrimLeft(strings.TrimPrefix(pattern, "./"), "/")
	if strings.HasSuffix(pattern, "/") { // a directory is meant: all that is in it
		pattern += "**"
	}
	parts := strings.Split(pattern, "/")
	parts = slices.CompactFunc(parts, func(a, b string) bool { return a == "**" && b == "**" })
	at := open(parts, []int{0})
	for _, name := range names {
		at = open(parts, step(parts, at, name))
	}
	var rests []string
	for _, i := range at {
		if i < len(parts) {
			rests = append(rests, "/"+strings.Join(parts[i:], "/"))
		}
	}
	return rests
}

// step returns the parts that may follow after a name was matched by one of
// those that may come now.
func step(parts []string, at []int, name string) []int {
	var next []int
	for _, i := range at {
		switch {
		case i == len(parts):
		case parts[i] == "**":
			if !strings.HasPrefix(name, ".") {
				next = append(next, i)
			}
		case said(parts[i], name):
			next = append(next, i+1)
		}
	}
	return next
}

// said reports whether a part of a pattern means a name; a dot in front must be
// said.
func said(part, name string) bool {
	if strings.HasPrefix(name, ".") && !strings.HasPrefix(part, ".") {
		return false
	}
	return doublestar.MatchUnvalidated(part, name)
}

// open adds the parts that may come at once because "**" may stand for nothing.
// The last "**" stands for files, so nothing is behind it.
func open(parts []string, at []int) []int {
	for i := 0; i < len(at); i++ { // at grows
		if p := at[i]; p < len(parts)-1 && parts[p] == "**" && !slices.Contains(at, p+1) {
			at = append(at, p+1)
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// spell writes out the alternatives that have a slash: where the parts of a
// pattern end is then the same in all that it means.
func spell(pattern string) ([]string, error) {
	todo, done := []string{pattern}, []string{}
	for len(todo) > 0 {
		if len(todo)+len(done) > maxSpelled {
			return nil, &backend.PatternError{Pattern: pattern, Err: errTooBroad}
		}
		one := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		start, end := braces(one)
		if end == 0 {
			done = append(done, one)
			continue
		}
		for _, alternative := range alternatives(one[start+1 : end]) {
			todo = append(todo, one[:start]+alternative+one[end+1:])
		}
	}
	return done, nil
}

// maxSpelled is how many patterns one with alternatives may become.
const maxSpelled = 64

// braces finds the first alternatives that have a slash; end is 0 when there are
// none.
func braces(pattern string) (start, end int) {
	depth, slash := 0, false
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '\\':
			i++
		case '{':
			if depth++; depth == 1 {
				start, slash = i, false
			}
		case '/':
			slash = slash || depth > 0
		case '}':
			if depth = max(depth-1, 0); depth == 0 && slash {
				return start, i
			}
		}
	}
	return 0, 0
}

// alternatives splits what is between braces at its own commas.
func alternatives(inner string) []string {
	var all []string
	depth, from := 0, 0
	for i := 0; i < len(inner); i++ {
		switch inner[i] {
		case '\\':
			i++
		case '{':
			depth++
		case '}':
			depth--
		case ',':
			if depth == 0 {
				all = append(all, inner[from:i])
				from = i + 1
			}
		}
	}
	return append(all, inner[from:])
}
