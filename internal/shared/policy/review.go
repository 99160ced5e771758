package policy

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/deckhand-dev/deckhand/internal/shared/policy/tree"
)

// review finds valid CEL that cannot be intended.
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
		s, ok := tree.Text(arg)
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

// reviewTool checks the names with which the variable tool is compared. It returns the first wrong one and the problem.
func reviewTool(args []ast.Expr, tools ToolKinds) (ast.Expr, string) {
	if len(args) != 2 {
		return nil, ""
	}
	if tree.IsTool(args[1]) {
		args = []ast.Expr{args[1], args[0]}
	}
	if !tree.IsTool(args[0]) {
		return nil, ""
	}
	names := []ast.Expr{args[1]}
	if args[1].Kind() == ast.ListKind {
		names = args[1].AsList().Elements()
	}
	for _, e := range names {
		if name, ok := tree.Text(e); ok && !tools.has(name) {
			return e, tools.unknown(name)
		}
	}
	return nil, ""
}
