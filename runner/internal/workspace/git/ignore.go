package git

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

const (
	ignoreFile = ".gitignore"
	// maxIgnore bounds one .gitignore, in bytes, and maxRules all rules together.
	maxIgnore = 1 << 20
	maxRules  = 20_000
)

// A rule is one line of a .gitignore.
type rule struct {
	under    string // the directory that it holds below; empty: everywhere
	pattern  string
	literal  bool // the pattern has no wildcards
	anyDepth bool // it matches the last name of a path, at any depth
	dirs     bool // it matches only directories
	negated  bool // what it matches is not ignored
}

// rules say what is ignored in one directory and below; the last that matches decides.
// They are read here because go-git's own (plumbing/format/gitignore, v5.19.3) differ from
// git's in three of the cases of TestRulesAreThoseOfGit: "foo/**" ignores foo itself, "!*/"
// takes back files below, and "[!0-9]" matches digits. What differs would be published.
type rules struct {
	list []rule
	// all is set below a directory that is ignored as a whole.
	all bool
}

// with returns the rules with those of a directory's .gitignore.
func (r rules) with(dir string, text []byte) rules {
	list := slices.Clip(r.list) // directories beside this one add to the same list
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		if len(list) >= maxRules {
			break
		}
		if next, ok := parseRule(dir, strings.TrimRight(string(line), "\r\n")); ok {
			list = append(list, next)
		}
	}
	return rules{list: list, all: r.all}
}

// parseRule reads a line as git does.
func parseRule(dir, line string) (rule, bool) {
	r := rule{under: dir}
	if strings.HasPrefix(line, "#") {
		return r, false
	}
	line = trimSpaces(line)
	if rest, ok := strings.CutPrefix(line, "!"); ok {
		r.negated, line = true, rest
	}
	return r.withPattern(line)
}

// withPattern returns the rule with a pattern; false: it matches nothing.
func (r rule) withPattern(line string) (rule, bool) {
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirs, line = true, rest
	}
	r.anyDepth = !strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if line == "" {
		return r, false
	}
	if strings.HasSuffix(line, "/**") { // what is in the directory, not the directory
		line += "/*"
	}
	r.literal = !strings.ContainsAny(line, `*?[\`)
	r.pattern = inClasses.Replace(line)
	if r.literal {
		r.pattern = line
	}
	return r, r.literal || doublestar.ValidatePattern(r.pattern)
}

// inClasses writes a pattern of git as one of package doublestar: without alternatives, and
// with the members of the classes that have names. Tools write "a[[:space:]]b" for a name
// with a space.
var inClasses = strings.NewReplacer("{", `\{`, "}", `\}`,
	"[:alnum:]", "0-9A-Za-z", "[:alpha:]", "A-Za-z", "[:blank:]", " \t", "[:cntrl:]", "\x01-\x1f\x7f", "[:digit:]", "0-9",
	"[:graph:]", "!-.0-~", "[:lower:]", "a-z", "[:print:]", " -.0-~", "[:punct:]", `!-.:-@\[-`+"`{-~", "[:space:]", " \t-\r",
	"[:upper:]", "A-Z", "[:xdigit:]", "0-9A-Fa-f")

// trimSpaces drops trailing spaces that are not escaped.
func trimSpaces(line string) string {
	trimmed := strings.TrimRight(line, " ")
	slashes := len(trimmed) - len(strings.TrimRight(trimmed, `\`))
	if slashes%2 == 1 && len(trimmed) < len(line) {
		trimmed += " "
	}
	return trimmed
}

// ignore reports whether a file or directory is ignored, if its parent is not.
func (r rules) ignore(name string, mode fs.FileMode) bool {
	if r.all {
		return true
	}
	for _, one := range slices.Backward(r.list) {
		if one.matches(name, mode) {
			return !one.negated
		}
	}
	return false
}

func (r rule) matches(name string, mode fs.FileMode) bool {
	if r.dirs && !mode.IsDir() {
		return false
	}
	if r.under != "" {
		rest, ok := strings.CutPrefix(name, r.under+"/")
		if !ok {
			return false
		}
		name = rest
	}
	if r.anyDepth {
		name = path.Base(name)
	}
	if r.literal {
		return name == r.pattern
	}
	return doublestar.MatchUnvalidated(r.pattern, name)
}
