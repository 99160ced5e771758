package policy

import (
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
)

// acrossLines lets the dot of a regular expression take line ends too, where that makes the rule
// stricter: where a match denies a call or asks about it, and where a match that is negated allows
// it. So a line end in a name or a command does not lead past the rule. Elsewhere the dot ends at a
// line, so that a rule which allows one line does not allow what follows it. The reviews come
// before: they quote the expressions as they are written.
func acrossLines(a *ast.AST, answer Answer) {
	factory := ast.NewExprFactory()
	for _, call := range ast.MatchDescendants(ast.NavigateAST(a), ast.FunctionMatcher(functionMatches)) {
		args := call.Children()
		pattern := args[len(args)-1]
		literal, ok := text(pattern)
		if strict := (answer != Allow) != isNegated(call); ok && strict {
			pattern.SetKindCase(factory.NewLiteral(pattern.ID(), types.String("(?s)"+literal)))
		}
	}
}
