package policy

import (
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// Functions of CEL that compare texts.
const (
	functionStartsWith = "startsWith"
	functionEndsWith   = "endsWith"
	functionContains   = "contains"
	functionMatches    = "matches"
	functionLower      = "lowerAscii"
)

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
	c := comparison{function: functionOf(e)}
	sides := e.Children()
	if len(sides) != 2 {
		return c, false
	}
	switch c.function {
	case operators.Equals, operators.NotEquals:
		if _, ok := text(sides[0]); ok {
			slices.Reverse(sides)
		}
	case operators.In, functionStartsWith, functionEndsWith, functionContains, functionMatches:
	default:
		return c, false
	}
	of := sides[0]
	if functionOf(of) == functionLower {
		c.lower, of = true, of.Children()[0]
	}
	c.argument = argumentOf(of)
	if _, canonical := canonicalArguments[c.argument]; !canonical {
		return c, false
	}
	c.negated = isNegated(e)
	instead, hasDefault := defaultOf(of)
	for _, item := range items(sides[1]) {
		if value, ok := text(item); ok && (!hasDefault || value != instead) {
			c.literals = append(c.literals, item)
		}
	}
	return c, true
}

// isNegated reports whether a comparison must not hold for the condition to hold.
func isNegated(e ast.NavigableExpr) bool {
	negated := functionOf(e) == operators.NotEquals
	for parent, ok := e.Parent(); ok; parent, ok = parent.Parent() {
		negated = negated != (functionOf(parent) == operators.LogicalNot)
	}
	return negated
}

// argumentOf returns the name of the argument that an expression reads, as args.path, args['path'], or args.?path with
// orValue; empty: it reads none.
func argumentOf(e ast.NavigableExpr) string {
	switch children := e.Children(); {
	case functionOf(e) == "orValue" || functionOf(e) == "value":
		return argumentOf(children[0])
	case functionOf(e) == operators.OptSelect, functionOf(e) == operators.OptIndex:
		if !isArgs(children[0]) {
			return ""
		}
		name, _ := text(children[1])
		return name
	case e.Kind() == ast.SelectKind && !e.AsSelect().IsTestOnly() && isArgs(children[0]):
		return e.AsSelect().FieldName()
	case functionOf(e) == operators.Index && isArgs(children[0]):
		name, _ := text(children[1])
		return name
	}
	return ""
}

// defaultOf returns the literal that x.orValue('…') has if x is absent; false: none.
func defaultOf(e ast.NavigableExpr) (string, bool) {
	if functionOf(e) != "orValue" {
		return "", false
	}
	return text(e.Children()[1])
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
		return "", fmt.Sprintf("%q never matches: %v", shorten(literal), err)
	case right == literal:
		return right, ""
	case c.argument == "path" && !path.IsAbs(literal):
		return right, fmt.Sprintf("%q is relative, and args.path of a file tool is always absolute; write %q", shorten(literal), shorten(right))
	case c.argument == "path" && isOutside(path.Clean(literal), c.function == functionStartsWith):
		return right, fmt.Sprintf("%q is outside of what file tools reach, which is below %s and %s; write %q",
			shorten(literal), strings.Join(roots[:len(roots)-1], ", "), roots[len(roots)-1], shorten(right))
	case c.lower && lowerCase(literal) != literal:
		return right, fmt.Sprintf("%q never matches: lowerAscii leaves no upper case; write %q", shorten(literal), shorten(right))
	}
	return right, fmt.Sprintf("%q never matches: %s; write %q", shorten(literal), argument.form, shorten(right))
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
		literal, _ := text(e)
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
