package policy

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// truth reports whether an expression may be true for calls of a tool, and whether it may be false.
// It knows the name of the tool and the names of its arguments.
func (c candidate) truth(e ast.NavigableExpr) (holds, fails bool) {
	children := e.Children()
	switch functionOf(e) {
	case operators.LogicalNot:
		holds, fails = c.truth(children[0])
		return fails, holds
	case operators.LogicalAnd:
		left, notLeft := c.truth(children[0])
		right, notRight := c.truth(children[1])
		return left && right, notLeft || notRight
	case operators.LogicalOr:
		left, notLeft := c.truth(children[0])
		right, notRight := c.truth(children[1])
		return left || right, notLeft && notRight
	case operators.Conditional:
		return c.truthOfChoice(children)
	case operators.Equals, operators.NotEquals, operators.In:
		if names, ok := toolNames(e); ok {
			is := slices.Contains(names, c.name) != (functionOf(e) == operators.NotEquals)
			return is, !is
		}
	case functionStartsWith:
		if begin, ok := text(children[1]); ok && named(children[0]) {
			return c.begins(begin)
		}
	}
	return c.truthOfRest(e)
}

// truthOfChoice is truth of a condition, and of what is chosen by it.
func (c candidate) truthOfChoice(children []ast.NavigableExpr) (holds, fails bool) {
	yes, no := c.truth(children[0])
	for i, isChosen := range []bool{yes, no} {
		if isChosen {
			h, f := c.truth(children[i+1])
			holds, fails = holds || h, fails || f
		}
	}
	return holds, fails
}

// begins is truth of tool.startsWith.
func (c candidate) begins(with string) (holds, fails bool) {
	if c.name != "" {
		is := strings.HasPrefix(c.name, with)
		return is, !is
	}
	is := strings.HasPrefix(c.prefix, with)
	return is || strings.HasPrefix(with, c.prefix), !is
}

// truthOfRest is truth of a literal, and of an expression that is about an argument that the tool
// does not have.
func (c candidate) truthOfRest(e ast.NavigableExpr) (holds, fails bool) {
	if e.Kind() == ast.LiteralKind {
		is, ok := e.AsLiteral().(types.Bool)
		return bool(is) || !ok, !bool(is) || !ok
	}
	name := optionalArgument(e)
	isTest := e.Kind() == ast.SelectKind || functionOf(e) == operators.In || functionOf(e) == functionHasValue
	if name != "" && isTest && c.lacks(name) {
		return false, true
	}
	compared, ok := defaultComparison(e)
	if !ok || !c.lacks(argumentOf(compared.of)) {
		return true, true
	}
	is := compared.holds(compared.instead) != (compared.function == operators.NotEquals)
	return is, !is
}

// functionHasValue is the function of optional values that tests them.
const functionHasValue = "hasValue"

// optionalArgument is the name of an argument that an expression reads where it may be absent: in
// has(args.x), 'x' in args, args.?x.hasValue() or args.?x.orValue('…'); empty: it does none of them.
func optionalArgument(e ast.NavigableExpr) string {
	children := e.Children()
	switch {
	case e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() && isArgs(children[0]):
		return e.AsSelect().FieldName()
	case functionOf(e) == operators.In && isArgs(children[1]):
		name, _ := text(children[0])
		return name
	case functionOf(e) == functionHasValue, functionOf(e) == "orValue":
		return argumentOf(children[0])
	}
	return ""
}

// A defaulted comparison is one of args.?x.orValue('…') with literals.
type defaulted struct {
	comparison
	of      ast.NavigableExpr
	instead string // the default
}

// defaultComparison is the comparison with a default that an expression is; false: none.
func defaultComparison(e ast.NavigableExpr) (d defaulted, ok bool) {
	sides := e.Children()
	if len(sides) != 2 {
		return d, false
	}
	d.function = functionOf(e)
	switch d.function {
	case operators.Equals, operators.NotEquals:
		if _, isLiteral := text(sides[0]); isLiteral {
			slices.Reverse(sides)
		}
	case operators.In, functionStartsWith, functionEndsWith, functionContains, functionMatches:
	default:
		return d, false
	}
	d.of, d.literals = sides[0], items(sides[1])
	if functionOf(d.of) == functionLower {
		d.lower, d.of = true, d.of.Children()[0]
	}
	_, areLiterals := texts(d.literals)
	d.instead, ok = defaultOf(d.of)
	return d, ok && areLiterals
}

// missingRead is the first read of an argument that none of the tools has for whose calls the read
// counts, with these tools; nil: there is none. A read where an argument may be absent is none.
func missingRead(e ast.NavigableExpr, tools []candidate) (read ast.NavigableExpr, by []candidate) {
	if len(tools) == 0 {
		return nil, nil
	}
	if name := argumentOf(e); name != "" && isDirect(e) && areWithout(tools, name) {
		return e, tools
	}
	for i, child := range e.Children() {
		if read, by = missingRead(child, counting(e, i, tools)); read != nil {
			return read, by
		}
	}
	return nil, nil
}

// counting are the tools for whose calls a child of an expression counts.
func counting(e ast.NavigableExpr, child int, tools []candidate) []candidate {
	children := e.Children()
	switch functionOf(e) {
	case operators.LogicalAnd:
		return where(children[1-child], true, tools)
	case operators.LogicalOr:
		return where(children[1-child], false, tools)
	case operators.Conditional:
		if child > 0 {
			return where(children[0], child == 1, tools)
		}
	}
	return tools
}

// where are the tools for whose calls an expression may have a value.
func where(e ast.NavigableExpr, value bool, tools []candidate) []candidate {
	return slices.DeleteFunc(slices.Clone(tools), func(c candidate) bool {
		holds, fails := c.truth(e)
		return value && !holds || !value && !fails
	})
}

// isDirect reports whether an expression is args.x or args['x'] itself.
func isDirect(e ast.NavigableExpr) bool {
	return e.Kind() == ast.SelectKind || functionOf(e) == operators.Index
}

// Functions of CEL that compare texts.
const (
	functionStartsWith = "startsWith"
	functionEndsWith   = "endsWith"
	functionContains   = "contains"
	functionMatches    = "matches"
	functionLower      = "lowerAscii"
)

// A comparison is one of a canonical argument with literals.
type comparison struct {
	argument string
	lower    bool // of what lowerAscii returns
	function string
	negated  bool // in the whole condition
	literals []ast.NavigableExpr
}

// comparisonOf is the comparison that an expression is; false: none.
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

// argumentOf is the name of the argument that an expression reads, as args.path,
// args['path'], or args.?path with orValue; empty: none.
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

// defaultOf is the literal that x.orValue('…') has where x is absent; false: none.
func defaultOf(e ast.NavigableExpr) (string, bool) {
	if functionOf(e) != "orValue" {
		return "", false
	}
	return text(e.Children()[1])
}

// isArgs reports whether an expression is the variable args.
func isArgs(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "args" }

// correct returns what to write instead of a literal, and why; without a reason the
// comparison can hold.
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

// holds reports whether a literal of the comparison fits a value; that of != does
// if it is the value.
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

// isCovered reports whether another expression has a comparison that does what this
// one is to do: one of the same argument that holds for the right literal. Which
// texts a regular expression is to match is not known: any such comparison may.
func (c comparison) isCovered(by ast.NavigableExpr, right string) bool {
	covers := func(e ast.NavigableExpr) bool {
		other, ok := comparisonOf(e)
		return ok && other.argument == c.argument && other.negated == c.negated && (c.function == functionMatches || other.holds(right))
	}
	return len(ast.MatchDescendants(by, covers)) > 0
}

// matchesRelative reports whether a regular expression matches from the start of a
// text and never one that starts with a slash.
func matchesRelative(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || re.Op != syntax.OpConcat || re.Sub[0].Op != syntax.OpBeginText {
		return false
	}
	return startsWithoutSlash(re.Sub[1])
}

// startsWithoutSlash reports whether each match of an expression has a first character
// and that is no slash.
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

// lowerCase is a text with the letters of ASCII in lower case.
func lowerCase(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'A' && c <= 'Z' {
			return c + 'a' - 'A'
		}
		return c
	}, s)
}

// maxPatterns bounds the instructions of all patterns of a policy: some megabytes.
const maxPatterns = 5 * pattern.MaxInstructions

// A patternValidator checks patterns that are literals, before any of them is compiled.
type patternValidator struct{}

// Name implements [cel.ASTValidator].
func (patternValidator) Name() string { return "deckhand.validator.matches" }

// Validate implements [cel.ASTValidator].
func (patternValidator) Validate(_ *cel.Env, _ cel.ValidatorConfig, a *ast.AST, issues *cel.Issues) {
	for _, literal := range patternLiterals(a) {
		expression, _ := text(literal)
		err := pattern.Check(expression)
		if size, large := errors.AsType[*pattern.SizeError](err); large {
			issues.ReportErrorAtID(literal.ID(), "the pattern is too large: %s", size)
		} else if err != nil {
			issues.ReportErrorAtID(literal.ID(), "invalid matches argument")
		}
	}
}

// patternLiterals returns the patterns of a condition that are literals.
func patternLiterals(a *ast.AST) []ast.NavigableExpr {
	var all []ast.NavigableExpr
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher(functionMatches)) {
		args := call.Children()
		if _, ok := text(args[len(args)-1]); ok {
			all = append(all, args[len(args)-1])
		}
	}
	return all
}

// patternSize counts the instructions of the patterns of a condition that are literals.
func patternSize(a *ast.AST) int {
	size := 0
	for _, literal := range patternLiterals(a) {
		expression, _ := text(literal)
		n, _ := pattern.Instructions(expression) // patternValidator refuses what is no pattern
		size += n
	}
	return size
}

// tooManyPatterns reports the rule with which the patterns of a policy become too large.
func tooManyPatterns(size int) *Error {
	return &Error{
		Field: "when",
		Message: fmt.Sprintf("the patterns of the rules so far compile to about %d instructions; at most %d are allowed. Use smaller numbers in {}, or fewer patterns",
			size, maxPatterns),
	}
}
