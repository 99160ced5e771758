// Package celmacros bounds the macros of CEL that copy their operand.
package celmacros

import (
	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/ast"
)

// maxTarget is how many nodes the expression may have that optMap or optFlatMap is
// called on. CEL's macros copy it, so that a chain of n calls is a tree of 2ⁿ nodes.
const maxTarget = 1000

// Optional returns CEL's optional values with modified macros optMap and optFlatMap, which are refused if the
// expression that they copy is too large. message is the error.
func Optional(message string) ([]cel.EnvOption, error) {
	env, err := cel.NewCustomEnv(cel.OptionalTypes())
	if err != nil {
		return nil, err
	}
	all := []cel.EnvOption{cel.OptionalTypes()}
	for _, m := range env.Macros() {
		if name := m.Function(); name == "optMap" || name == "optFlatMap" {
			all = append(all, cel.Macros(cel.ReceiverMacro(name, m.ArgCount(), bounded(m.Expander(), message))))
		}
	}
	return all, nil
}

func bounded(expand cel.MacroFactory, message string) cel.MacroFactory {
	return func(f cel.MacroExprFactory, target ast.Expr, args []ast.Expr) (ast.Expr, *cel.Error) {
		nodes := 0
		ast.PreOrderVisit(target, ast.NewExprVisitor(func(ast.Expr) { nodes++ }))
		if nodes > maxTarget {
			return nil, f.NewError(target.ID(), message)
		}
		return expand(f, target, args)
	}
}
