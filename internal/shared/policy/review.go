package policy

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// review looks for what is valid CEL and yet can never be what was meant.
func review(a *ast.AST, tools ToolKinds) *Error {
	var first *Error
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if first != nil || e.Kind() != ast.CallKind {
			return
		}
		call := e.AsCall()
		at, message := e, ""
		switch call.FunctionName() {
		case "runs":
			at, message = reviewRuns(call, tools)
		case "opaque":
			message = reviewShell(tools)
		case operators.Equals, operators.NotEquals, operators.In:
			at, message = reviewTool(call.Args(), tools)
		}
		if message == "" {
			return
		}
		if at == nil {
			at = e
		}
		where := a.SourceInfo().GetStartLocation(at.ID())
		first = &Error{Field: "when", Line: where.Line(), Column: where.Column() + 1, Message: message}
	}))
	return first
}

func reviewShell(tools ToolKinds) string {
	if tools.shell() {
		return ""
	}
	return "shell is about the tool that runs command lines, and the agent has none; leave this out"
}

// reviewRuns wants a program and its words apart.
func reviewRuns(call ast.CallExpr, tools ToolKinds) (ast.Expr, string) {
	if message := reviewShell(tools); message != "" {
		return nil, message
	}
	for _, arg := range call.Args() {
		s, ok := text(arg)
		switch words := strings.Fields(s); {
		case !ok:
		case len(words) == 0:
			return arg, `this names nothing; write a program, as in shell.runs('rm')`
		case len(words) > 1:
			return arg, fmt.Sprintf("this is several words in one; write shell.runs('%s')", shorten(strings.Join(words, "', '")))
		}
	}
	return nil, ""
}

// reviewTool looks at the tools that the variable tool is compared with.
func reviewTool(args []ast.Expr, tools ToolKinds) (ast.Expr, string) {
	if len(args) != 2 {
		return nil, ""
	}
	if named(args[1]) {
		args = []ast.Expr{args[1], args[0]}
	}
	if !named(args[0]) {
		return nil, ""
	}
	names := []ast.Expr{args[1]}
	if args[1].Kind() == ast.ListKind {
		names = args[1].AsList().Elements()
	}
	for _, e := range names {
		if name, ok := text(e); ok && !tools.has(name) {
			return e, tools.unknown(name)
		}
	}
	return nil, ""
}

// named reports whether an expression is the variable tool.
func named(e ast.Expr) bool { return e.Kind() == ast.IdentKind && e.AsIdent() == "tool" }

// text is the value of a text that is written out.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}
