package expr

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	celcommon "github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// maxPasses is more than an expression needs: each finds changes further up.
const maxPasses = 64

// Compile checks an expression. It may have any type that fits want; where want
// is Dyn, any that is not optional.
func (e *Env) Compile(text string, want Type) (*Program, *Error) {
	s := &source{Env: e, text: text}
	if strings.TrimSpace(text) == "" {
		return nil, s.wrong(1, 1, "there is no expression; write one, as in true")
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.review(); err != nil {
		return nil, err
	}
	root := s.checked.Expr()
	if kind := s.typ(root).Kind(); kind == types.BytesKind || kind == types.TypeKind {
		return nil, s.at(root, "this is %s, which JSON has no word for; write string(…)", s.kindOf(root))
	}
	typ := s.objects.fromCEL(s.typ(root))
	if why := typ.fits(want); why != "" {
		return nil, s.unfit(root, typ, want)
	}
	planned, err := e.env.PlanProgram(s.checked, e.programOptions()...)
	if err != nil {
		return nil, s.wrong(1, 1, err.Error())
	}
	paths := pathsOf(root)
	return &Program{source: s, typ: typ, want: want, paths: paths, reads: readsOf(paths), planned: planned}, nil
}

// A source is an expression as it was written and as it was understood.
type source struct {
	*Env
	text    string
	checked *ast.AST
	nodes   map[int64]ast.Expr
}

func (s *source) wrong(line, column int, message string) *Error {
	return &Error{Expression: strings.TrimSpace(s.text), Line: max(line, 1), Column: max(column, 1), Message: cut(message, maxMessage)}
}

// at is what is wrong with a node.
func (s *source) at(e ast.Expr, format string, args ...any) *Error {
	for next := begins(e); next != nil; next = begins(e) {
		e = next // where it begins, not its last dot
	}
	where := s.checked.SourceInfo().GetStartLocation(e.ID())
	return s.wrong(where.Line(), where.Column()+1, fmt.Sprintf(format, args...))
}

// begins is what a node begins with in the text; nil: itself.
func begins(e ast.Expr) ast.Expr {
	if e.Kind() == ast.SelectKind {
		return e.AsSelect().Operand()
	}
	if e.Kind() != ast.CallKind {
		return nil
	}
	call := e.AsCall()
	if call.IsMemberFunction() {
		return call.Target()
	}
	_, binary := operators.FindReverseBinaryOperator(call.FunctionName())
	switch name := call.FunctionName(); {
	case binary, name == operators.OptSelect, name == operators.Index, name == operators.OptIndex, name == operators.Conditional,
		len(call.Args()) == 1 && call.Args()[0].ID() >= inside:
		return call.Args()[0]
	}
	return nil
}

// check finds the types, and changes the expression until what may be absent is
// optional.
func (s *source) check() *Error {
	parsed, issues := s.env.Parse(s.text)
	if issues.Err() != nil {
		return s.syntax(issues.Errors()[0])
	}
	changed := keys(parsed.NativeRep())
	var errs *celcommon.Errors
	for range maxPasses {
		s.checked, errs = checker.Check(changed.apply(parsed.NativeRep()), parsed.Source(), s.checker)
		if !s.objects.adapt(s.checked, changed) {
			s.index()
			if all := errs.GetErrors(); len(all) > 0 {
				return s.explain(all[0])
			}
			return nil
		}
	}
	return s.wrong(1, 1, "the expression is too complicated; put parts of it into nodes of their own")
}

// index finds nodes by their ids.
func (s *source) index() {
	s.nodes = map[int64]ast.Expr{}
	ast.PostOrderVisit(s.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) { s.nodes[e.ID()] = e }))
}

func (s *source) typ(e ast.Expr) *cel.Type { return s.checked.GetType(e.ID()) }

// review refuses what CEL would take and nobody means.
func (s *source) review() *Error {
	var wrong *Error
	nodes, ok := s.vars[nodesVar]
	readPaths(s.checked.Expr(), func(p path, e ast.Expr) {
		if wrong == nil && ok && len(p) == 1 && p[0] == nodesVar {
			wrong = s.at(e, "nodes cannot be used as a whole, name one: %s", has(nodesVar, nodes))
		}
	})
	ast.PostOrderVisit(s.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if wrong == nil && e.Kind() == ast.CallKind {
			wrong = s.reviewCall(e.AsCall())
		}
	}))
	return wrong
}

// takesOptional are the functions that know what to do with what may be absent.
var takesOptional = map[string]bool{
	"value": true, "hasValue": true, "or": true, "orValue": true, "optional.of": true, "optional.ofNonZeroValue": true,
	sameFunction: true, flatFunction: true, operators.Conditional: true,
	operators.Index: true, operators.OptIndex: true, operators.OptSelect: true,
}

func (s *source) reviewCall(call ast.CallExpr) *Error {
	if call.FunctionName() == "matches" {
		if err := s.pattern(call); err != nil {
			return err
		}
	}
	if takesOptional[call.FunctionName()] {
		return nil
	}
	args := call.Args()
	if equality := call.FunctionName() == operators.Equals || call.FunctionName() == operators.NotEquals; equality &&
		isOptional(s.typ(args[0])) && isOptional(s.typ(args[1])) {
		return nil
	}
	if e := s.optionalOf(call); e != nil {
		return s.misused(e, call)
	}
	return nil
}

// misused says what to write where a function takes what may be absent.
func (s *source) misused(e ast.Expr, call ast.CallExpr) *Error {
	for _, arg := range call.Args() {
		if t := s.typ(arg); t != nil && t.Kind() == types.NullTypeKind {
			return s.at(e, "%s is never null: write %s.hasValue()", s.describe(e), s.describe(e))
		}
	}
	return s.absent(e)
}

// pattern compiles a regular expression that is written down.
func (s *source) pattern(call ast.CallExpr) *Error {
	last := call.Args()[len(call.Args())-1]
	literal, ok := text(last)
	if !ok {
		return nil
	}
	if _, err := compilePattern(literal); err != nil {
		return s.at(last, "%v", err)
	}
	return nil
}

// optionalOf is the first of the values that a function takes that may be absent.
func (s *source) optionalOf(call ast.CallExpr) ast.Expr {
	var all []ast.Expr
	if call.IsMemberFunction() {
		all = append(all, call.Target())
	}
	for _, e := range append(all, call.Args()...) {
		if t := s.typ(e); isOptional(t) && t.Parameters()[0].Kind() != types.ErrorKind {
			return e
		}
	}
	return nil
}
