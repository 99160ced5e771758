package git

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strconv"
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

// rules are the ignore rules for one directory and below; the last that matches decides. They are parsed here because
// go-git's own (plumbing/format/gitignore, v5.19.3) differ from git's in three of the cases of TestRulesAreThoseOfGit:
// "foo/**" ignores foo itself, "!*/" includes files below again, and "[!0-9]" matches digits. Files could be published
// that git ignores.
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

// withPattern returns the rule with a pattern; false: the pattern matches nothing.
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

const (
	attributesFile = ".gitattributes"
	// maxAttributesLine is the longest line that git reads, in bytes.
	maxAttributesLine = 2048
	// macroPrefix begins a line that gives several attributes a name.
	macroPrefix = "[attr]"
)

// An attribute is the setting of one attribute in a line.
type attribute struct {
	name  string
	value string // empty: it is set without a value, or not set
	set   bool   // it has no value, and is set
}

// attributes are the rules of the .gitattributes files of a directory and those above it; the last that matches
// decides. go-git's own (plumbing/format/gitattributes, v5.19.3) have the same errors in patterns as its rules for
// .gitignore.
// https://git-scm.com/docs/gitattributes
type attributes struct {
	rules  []attributeRule
	macros map[string][]attribute
}

// An attributeRule is one line of a .gitattributes.
type attributeRule struct {
	rule
	says []attribute
}

// with returns the attributes with those of a directory's .gitattributes.
func (a attributes) with(dir string, text []byte) attributes {
	next := attributes{rules: slices.Clip(a.rules), macros: a.macros}
	if dir == "" {
		next.macros = map[string][]attribute{}
	}
	for line := range bytes.Lines(bytes.TrimPrefix(text, []byte("\ufeff"))) {
		if len(next.rules) >= maxRules || len(next.macros) >= maxRules {
			break
		}
		next = next.withLine(dir, strings.TrimRight(string(line), "\r\n"))
	}
	return next
}

// withLine returns the attributes with those of a line, read as git does.
func (a attributes) withLine(dir, line string) attributes {
	if len(line) >= maxAttributesLine {
		return a
	}
	pattern, rest := cutPattern(strings.TrimLeft(line, blanks))
	macro, isMacro := strings.CutPrefix(pattern, macroPrefix)
	says, ok := parseAttributes(rest)
	switch {
	case !ok || pattern == "":
	case isMacro && macro != "":
		if dir == "" && isAttributeName(macro) { // elsewhere git reads no macros
			a.macros[macro] = says
		}
	case strings.HasPrefix(pattern, "!"): // which git does not allow here
	default:
		if r, ok := (rule{under: dir}).withPattern(pattern); ok {
			a.rules = append(a.rules, attributeRule{rule: r, says: says})
		}
	}
	return a
}

const blanks = " \t\r\n"

// cutPattern returns the pattern of a line and the rest; empty: the line has no pattern. A pattern in quotes is written
// like a string in C.
func cutPattern(line string) (pattern, rest string) {
	if strings.HasPrefix(line, "#") {
		return "", ""
	}
	if strings.HasPrefix(line, `"`) {
		if quoted, err := strconv.QuotedPrefix(line); err == nil {
			if pattern, err := strconv.Unquote(quoted); err == nil {
				return pattern, line[len(quoted):]
			}
		}
	}
	return cutField(line)
}

// cutField returns the first field of a line and the rest.
func cutField(line string) (field, rest string) {
	line = strings.TrimLeft(line, blanks)
	if end := strings.IndexAny(line, blanks); end >= 0 {
		return line[:end], line[end:]
	}
	return line, ""
}

// parseAttributes parses the attributes after the pattern; false: git ignores the line.
func parseAttributes(text string) ([]attribute, bool) {
	var all []attribute
	for _, field := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(blanks, r) }) {
		name, value, hasValue := strings.Cut(field, "=")
		a := attribute{name: name, value: value, set: !hasValue}
		if strings.HasPrefix(name, "-") || strings.HasPrefix(name, "!") {
			a = attribute{name: name[1:]}
		}
		if !isAttributeName(a.name) {
			return nil, false
		}
		all = append(all, a)
	}
	return all, true
}

// isAttributeName reports whether a name is a valid name of an attribute.
func isAttributeName(name string) bool {
	return name != "" && name[0] != '-' && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '_' && r != '.' && (r < '0' || r > '9') && (r|0x20 < 'a' || r|0x20 > 'z')
	})
}

// filter returns the value of the attribute filter of a file, or an empty text.
func (a attributes) filter(name string) string {
	if len(a.rules) == 0 {
		return ""
	}
	found := map[string]attribute{}
	for _, r := range slices.Backward(a.rules) {
		if r.matches(name, 0) {
			a.fill(found, r.says)
		}
		if f, ok := found["filter"]; ok {
			return f.value
		}
	}
	return ""
}

// fill adds the attributes that are not decided yet, the last first. A macro that is set adds its own attributes.
func (a attributes) fill(found map[string]attribute, says []attribute) {
	for _, one := range slices.Backward(says) {
		if _, decided := found[one.name]; decided {
			continue
		}
		found[one.name] = one
		if one.set {
			a.fill(found, a.macros[one.name])
		}
	}
}
