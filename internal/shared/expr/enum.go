package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// unknownValue returns the error of the first string literal that is compared with a
// field of a closed set of values and is not one of them.
func (s *source) unknownValue() *Error {
	var wrong *Error
	ast.PostOrderVisit(s.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if wrong != nil || e.Kind() != ast.CallKind {
			return
		}
		args := e.AsCall().Args()
		switch e.AsCall().FunctionName() {
		case operators.Equals, operators.NotEquals:
			wrong = cmp.Or(s.notOneOf(args[0], args[1]), s.notOneOf(args[1], args[0]))
		case operators.In:
			if args[1].Kind() != ast.ListKind {
				return
			}
			for _, item := range args[1].AsList().Elements() {
				wrong = cmp.Or(wrong, s.notOneOf(args[0], item))
			}
		}
	}))
	return wrong
}

// notOneOf returns an error if a literal is not a value of a field.
func (s *source) notOneOf(field, literal ast.Expr) *Error {
	value, ok := text(literal)
	values := s.valuesOf(field)
	if !ok || values == nil || slices.Contains(values, value) {
		return nil
	}
	name := "it"
	if all := s.steps(target(field)); all != nil {
		name = written(all, len(all))
	}
	return s.at(literal, "%s is not a value of %s, which must be one of %s%s", quote(value), name, joinNames(values), closest(value, values))
}

// closest returns a hint with the value that was probably meant.
func closest(value string, values []string) string {
	if hint := template.Similar(value, values); hint != "" {
		return hint
	}
	const enough = 4
	for _, v := range values {
		if n := min(len(value), len(v), enough); n == enough && strings.EqualFold(value[:n], v[:n]) {
			return fmt.Sprintf("; did you mean %s?", v)
		}
	}
	return ""
}

// target returns the operand of orValue and value.
func target(e ast.Expr) ast.Expr {
	if e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() {
		return e.AsCall().Target()
	}
	return e
}

// valuesOf returns all values that an expression may have; nil: unknown.
func (s *source) valuesOf(e ast.Expr) []string {
	if e.Kind() == ast.CallKind && e.AsCall().IsMemberFunction() {
		return s.valuesOr(e.AsCall())
	}
	of, name, ok := fieldOf(e)
	if !ok || isTest(e) {
		return nil
	}
	f, _ := s.objects.field(s.typ(of), name)
	return f.value().values
}

// valuesOr returns the values of x.value() and x.orValue('…').
func (s *source) valuesOr(call ast.CallExpr) []string {
	values := s.valuesOf(call.Target())
	switch {
	case values == nil:
		return nil
	case call.FunctionName() == "value":
		return values
	case call.FunctionName() == "orValue" && len(call.Args()) == 1:
		if other, ok := text(call.Args()[0]); ok {
			return append(slices.Clip(values), other)
		}
	}
	return nil
}

// quote returns a string as a literal of CEL.
func quote(s string) string {
	return "'" + strings.NewReplacer(`\`, `\\`, "'", `\'`, "\n", `\n`).Replace(s) + "'"
}
