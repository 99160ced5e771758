package policylint

import (
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
	"github.com/deckhand-dev/deckhand/internal/shared/policy/tree"
	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
)

// Functions of CEL that compare texts.
const (
	functionStartsWith = "startsWith"
	functionEndsWith   = "endsWith"
	functionContains   = "contains"
	functionMatches    = "matches"
	functionLower      = "lowerAscii"
)

// maxShown is how many bytes of a text a message repeats.
const maxShown = 100

// A comparison compares a canonical argument with literals.
type comparison struct {
	argument string
	lower    bool // of what lowerAscii returns
	function string
	negated  bool // in the whole condition
	literals []ast.NavigableExpr
}

// comparisonOf returns the comparison in an expression; false: it is none.
func comparisonOf(e ast.NavigableExpr) (comparison, bool) {
	c := comparison{function: tree.Function(e)}
	sides := e.Children()
	if len(sides) != 2 {
		return c, false
	}
	switch c.function {
	case operators.Equals, operators.NotEquals:
		if _, ok := tree.Text(sides[0]); ok {
			slices.Reverse(sides)
		}
	case operators.In, functionStartsWith, functionEndsWith, functionContains, functionMatches:
	default:
		return c, false
	}
	of := sides[0]
	if tree.Function(of) == functionLower {
		c.lower, of = true, of.Children()[0]
	}
	c.argument = argumentOf(of)
	if _, canonical := canonicalArguments[c.argument]; !canonical {
		return c, false
	}
	c.negated = isNegated(e)
	instead, hasDefault := defaultOf(of)
	for _, item := range tree.Items(sides[1]) {
		if value, ok := tree.Text(item); ok && (!hasDefault || value != instead) {
			c.literals = append(c.literals, item)
		}
	}
	return c, true
}

// isNegated reports whether a comparison must not hold for the condition to hold.
func isNegated(e ast.NavigableExpr) bool {
	negated := tree.Function(e) == operators.NotEquals
	for parent, ok := e.Parent(); ok; parent, ok = parent.Parent() {
		negated = negated != (tree.Function(parent) == operators.LogicalNot)
	}
	return negated
}

// argumentOf returns the name of the argument that an expression reads, as args.path, args['path'], or args.?path with
// orValue; empty: it reads none.
func argumentOf(e ast.NavigableExpr) string {
	switch children := e.Children(); {
	case tree.Function(e) == "orValue" || tree.Function(e) == "value":
		return argumentOf(children[0])
	case tree.Function(e) == operators.OptSelect, tree.Function(e) == operators.OptIndex:
		if !isArgs(children[0]) {
			return ""
		}
		name, _ := tree.Text(children[1])
		return name
	case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() && isArgs(children[0]):
		return e.AsSelect().FieldName()
	case tree.Function(e) == operators.Index && isArgs(children[0]):
		name, _ := tree.Text(children[1])
		return name
	}
	return ""
}

// defaultOf returns the literal that x.orValue('…') has if x is absent; false: none.
func defaultOf(e ast.NavigableExpr) (string, bool) {
	if tree.Function(e) != "orValue" {
		return "", false
	}
	return tree.Text(e.Children()[1])
}

// isArgs reports whether an expression is the variable args.
func isArgs(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "args" }

// correct returns what to write instead of a literal, and why. Without a problem the comparison can hold.
func (c comparison) correct(literal string) (right, problem string) {
	argument := canonicalArguments[c.argument]
	var err error
	switch c.function {
	case operators.Equals, operators.NotEquals, operators.In:
		right, err = argument.whole(literal)
	case functionStartsWith:
		right, err = argument.prefix(literal)
	case functionMatches:
		right = literal
		if c.argument == "path" && matchesRelative(literal) {
			right = "^" + workspace + "/" + strings.TrimPrefix(literal, "^")
		}
	default: // a part of an argument is hardly ever wrong
		right = literal
	}
	if c.lower && c.function != functionMatches {
		right = lowerCase(right)
	}
	switch {
	case err != nil:
		return "", fmt.Sprintf("%q never matches: %v", quote.Clip(literal, maxShown), err)
	case right == literal:
		return right, ""
	case c.argument == "path" && !path.IsAbs(literal):
		return right, fmt.Sprintf("%q is relative, and args.path of a file tool is always absolute; write %q", quote.Clip(literal, maxShown), quote.Clip(right, maxShown))
	case c.argument == "path" && isOutside(path.Clean(literal), c.function == functionStartsWith):
		return right, fmt.Sprintf("%q is outside of what file tools reach, which is below %s and %s; write %q",
			quote.Clip(literal, maxShown), strings.Join(roots[:len(roots)-1], ", "), roots[len(roots)-1], quote.Clip(right, maxShown))
	case c.lower && lowerCase(literal) != literal:
		return right, fmt.Sprintf("%q never matches: lowerAscii leaves no upper case; write %q", quote.Clip(literal, maxShown), quote.Clip(right, maxShown))
	}
	return right, fmt.Sprintf("%q never matches: %s; write %q", quote.Clip(literal, maxShown), argument.form, quote.Clip(right, maxShown))
}

// holds reports whether the literal of the comparison matches a value. For != it must equal the value.
func (c comparison) holds(value string) bool {
	if c.lower {
		value = lowerCase(value)
	}
	fits := map[string]func(value, literal string) bool{
		functionStartsWith: strings.HasPrefix,
		functionEndsWith:   strings.HasSuffix,
		functionContains:   strings.Contains,
		functionMatches: func(value, pattern string) bool {
			ok, err := regexp.MatchString(pattern, value)
			return ok && err == nil
		},
	}[c.function]
	return slices.ContainsFunc(c.literals, func(e ast.NavigableExpr) bool {
		literal, _ := tree.Text(e)
		return literal == value || fits != nil && fits(value, literal)
	})
}

// isCovered reports whether another expression has a comparison that does what this one is meant to do: of the same
// argument, and true for the right literal. It is not known which texts a regular expression is meant to match, so any
// comparison with one counts.
func (c comparison) isCovered(by ast.NavigableExpr, right string) bool {
	covers := func(e ast.NavigableExpr) bool {
		other, ok := comparisonOf(e)
		return ok && other.argument == c.argument && other.negated == c.negated && (c.function == functionMatches || other.holds(right))
	}
	return len(ast.MatchDescendants(by, covers)) > 0
}

// matchesRelative reports whether a regular expression matches from the start of a text and never matches a text that
// starts with a slash.
func matchesRelative(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return false
	}
	return startsWithoutSlash(re.Sub[1])
}

// startsWithoutSlash reports whether each match of an expression begins with a character other than a slash. It is
// false for an expression that matches the empty text.
func startsWithoutSlash(re *syntax.Regexp) bool {
	switch re.Op { //nolint:exhaustive // any other may match nothing, or a slash
	case syntax.OpLiteral:
		return re.Rune[0] != '/'
	case syntax.OpCharClass:
		for i := 0; i < len(re.Rune); i += 2 {
			if re.Rune[i] <= '/' && '/' <= re.Rune[i+1] {
				return false
			}
		}
		return true
	case syntax.OpAlternate:
		return !slices.ContainsFunc(re.Sub, func(sub *syntax.Regexp) bool { return !startsWithoutSlash(sub) })
	case syntax.OpCapture, syntax.OpConcat, syntax.OpPlus:
		return startsWithoutSlash(re.Sub[0])
	}
	return false
}

// lowerCase returns a text with the letters of ASCII in lower case.
func lowerCase(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// workspace is where relative paths of file tools begin.
const workspace = "/workspace"

// roots are the directories whose files the tools reach.
var roots = []string{workspace, "/tmp", "/results", "/memories"}

// isOutside reports whether file tools accept no absolute path that equals the literal or, if it is a prefix, begins
// with it. The root itself can be listed.
func isOutside(literal string, isPrefix bool) bool {
	return path.IsAbs(literal) && literal != "/" && !slices.ContainsFunc(roots, func(root string) bool {
		return literal == root || strings.HasPrefix(literal, root+"/") || isPrefix && strings.HasPrefix(root, literal)
	})
}

// A canonicalArgument is an argument that tools of a kind have in canonical form before rules see it.
type canonicalArgument struct {
	kind policy.Kind
	form string // what errors say of it
	// whole and prefix return what to write instead of a literal. If an argument in canonical form can equal the
	// literal, or begin with it, that is the literal itself. An error has no replacement, and reads as the end of a
	// sentence.
	whole, prefix func(literal string) (string, error)
}

// canonicalArguments are the arguments that have a canonical form, by their names.
var canonicalArguments = map[string]canonicalArgument{
	"path":   {policy.Files, "args.path of a file tool is canonical", wholePath, pathPrefix},
	"url":    {policy.Web, "args.url is canonical", wholeURL, urlPrefix},
	"method": {policy.Web, "args.method is in upper case", upperCase, upperCase},
}

// inWorkspace returns a path below the workspace for a path that is relative or that file tools cannot reach.
func inWorkspace(literal string) string { return workspace + "/" + strings.TrimPrefix(literal, "/") }

// wholePath returns an absolute path without detours.
func wholePath(literal string) (string, error) {
	clean := path.Clean(literal)
	if !path.IsAbs(clean) || isOutside(clean, false) {
		clean = path.Clean(inWorkspace(clean))
	}
	return clean, nil
}

// pathPrefix is wholePath for all directories, followed by the beginning of a name.
func pathPrefix(literal string) (string, error) {
	if literal == "" {
		return "", nil
	}
	if !path.IsAbs(literal) {
		literal = inWorkspace(literal)
	}
	dir, name := path.Split(literal)
	clean := strings.TrimSuffix(path.Clean(dir), "/") + "/" + name
	if isOutside(clean, true) {
		clean = inWorkspace(clean)
	}
	return clean, nil
}

func wholeURL(literal string) (string, error) {
	u, err := weburl.Parse(literal)
	if err != nil {
		return "", err
	}
	return u.String(), nil
}

func urlPrefix(literal string) (string, error) {
	if weburl.IsPrefix(literal) {
		return literal, nil
	}
	return wholeURL(literal)
}

func upperCase(literal string) (string, error) { return strings.ToUpper(literal), nil }
