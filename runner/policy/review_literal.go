package policy

import (
	"fmt"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
)

// reviewPaths refuses a condition that compares the path of a file tool with relative
// paths only. File tools are judged on absolute paths, so it never holds. If the path
// is also compared with something else, the condition can hold. It says nothing where
// the condition may be about a tool of another kind.
func reviewPaths(a *ast.AST, about []string, tools ToolKinds) *Error {
	p := pathReview{names: about, tools: tools}
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(p.visit))
	if p.first == nil || p.negated || p.relative < p.uses || !p.onlyFiles() {
		return nil
	}
	where := a.SourceInfo().GetStartLocation(p.first.ID())
	path, _ := text(p.first)
	instead := "/workspace/" + strings.TrimPrefix(path, "./")
	if matchesRelative(path) {
		instead = "^/workspace/" + strings.TrimPrefix(path, "^")
	}
	return &Error{
		Field: "when", Line: where.Line(), Column: where.Column() + 1,
		Message: fmt.Sprintf("%q is relative, and args.path of a file tool is always absolute; write %q", shorten(path), shorten(instead)),
	}
}

type pathReview struct {
	tools    ToolKinds
	names    []string // of the tools that the condition is about
	negated  bool     // it is about the others, perhaps
	uses     int      // of the path
	relative int      // comparisons of the path with relative paths alone
	first    ast.Expr // the first relative path
}

func (p *pathReview) visit(e ast.Expr) {
	if isPath(e) {
		p.uses++
	}
	if e.Kind() != ast.CallKind {
		return
	}
	call := e.AsCall()
	args := call.Args()
	if call.IsMemberFunction() {
		args = slices.Concat([]ast.Expr{call.Target()}, args)
	}
	if name := call.FunctionName(); name == operators.LogicalNot || name == operators.NotEquals {
		p.negated = true
	}
	if len(args) != 2 {
		return
	}
	switch call.FunctionName() {
	case "startsWith", operators.In:
		p.compare(args[0], args[1], isRelative)
	case "matches":
		p.compare(args[0], args[1], matchesRelative)
	case operators.Equals:
		p.compare(args[0], args[1], isRelative)
		p.compare(args[1], args[0], isRelative)
	}
}

// compare notes what the tool or the path is compared with.
func (p *pathReview) compare(what, with ast.Expr, relative func(string) bool) {
	values := []ast.Expr{with}
	if with.Kind() == ast.ListKind {
		values = with.AsList().Elements()
	}
	if named(what) {
		for _, v := range values {
			if name, ok := text(v); ok {
				p.names = append(p.names, name)
			}
		}
		return
	}
	isOther := func(v ast.Expr) bool {
		value, ok := text(v)
		return !ok || !relative(value)
	}
	if !isPath(inLowerCase(what)) || len(values) == 0 || slices.ContainsFunc(values, isOther) {
		return
	}
	p.relative++
	if p.first == nil {
		p.first = values[0]
	}
}

// onlyFiles reports whether the condition names tools, and file tools alone.
func (p *pathReview) onlyFiles() bool {
	for _, name := range p.names {
		if p.tools[name] != Files {
			return false
		}
	}
	return len(p.names) > 0
}

func isRelative(path string) bool { return path != "" && !strings.HasPrefix(path, "/") }

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

// inLowerCase is the expression that an expression has in lower case, or itself.
func inLowerCase(e ast.Expr) ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "lowerAscii" && e.AsCall().IsMemberFunction() {
		return e.AsCall().Target()
	}
	return e
}

// isPath reports whether an expression is args.path or args["path"].
func isPath(e ast.Expr) bool {
	switch e.Kind() { //nolint:exhaustive // no other expression has a member
	case ast.SelectKind:
		s := e.AsSelect()
		return s.FieldName() == "path" && !s.IsTestOnly() && isArgs(s.Operand())
	case ast.CallKind:
		call := e.AsCall()
		if call.FunctionName() != operators.Index || len(call.Args()) != 2 {
			return false
		}
		name, ok := text(call.Args()[1])
		return ok && name == "path" && isArgs(call.Args()[0])
	}
	return false
}

// isArgs reports whether an expression is the variable args.
func isArgs(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "args" }
