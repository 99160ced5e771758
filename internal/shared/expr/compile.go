package expr

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	celcommon "github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// Compile checks an expression. Its type has to fit want; Dyn is any type that is not
// optional.
func (e *Env) Compile(text string, want Type) (*Program, *Error) {
	s := &source{Env: e, text: text, want: want}
	if strings.TrimSpace(text) == "" {
		return nil, s.newError(1, 1, "the expression is empty; write one, for example true")
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	if err := s.review(); err != nil {
		return nil, err
	}
	root := s.checked.Expr()
	if why := s.notJSON(root); why != "" {
		return nil, s.at(root, "this is %s, which JSON has no type for; %s", s.kindOf(root), why)
	}
	typ := s.objects.fromCEL(s.typ(root))
	if why := typ.fits(want); why != "" {
		return nil, s.unfit(root, typ, want)
	}
	paths := pathsOf(root)
	s.insertCalls()
	planned, err := e.env.PlanProgram(s.checked, e.programOptions()...)
	if err != nil {
		return nil, s.newError(1, 1, err.Error())
	}
	s.Env = nil // a Program lives long, and does not need the declarations of types
	return &Program{source: s, vars: e.vars, typ: typ, want: want, paths: paths, planned: planned}, nil
}

// A source is an expression with its text and its syntax tree.
type source struct {
	*Env
	text    string
	want    Type
	checked *ast.AST
}

func (s *source) newError(line, column int, message string) *Error {
	return &Error{Expression: strings.TrimSpace(s.text), Line: max(line, 1), Column: max(column, 1), Message: cut(message, maxMessage)}
}

// at returns an error at the position of a node.
func (s *source) at(e ast.Expr, format string, args ...any) *Error {
	for next := firstOperand(e); next != nil; next = firstOperand(e) {
		e = next // its start, not its last dot
	}
	where := s.checked.SourceInfo().GetStartLocation(e.ID())
	return s.newError(where.Line(), where.Column()+1, fmt.Sprintf(format, args...))
}

// firstOperand returns the node at the start of a node in the text; nil: the node itself.
func firstOperand(e ast.Expr) ast.Expr {
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
	case binary, name == operators.OptSelect, name == operators.Index, name == operators.OptIndex, name == operators.Conditional, isWrapped(call):
		return call.Args()[0]
	}
	return nil
}

// check parses the expression and finds its types. Of an error of CEL's checker and a
// field that may be absent, it returns the one further left.
func (s *source) check() *Error {
	parsed, issues := s.env.Parse(s.text)
	if issues.Err() != nil {
		return s.syntax(issues.Errors()[0])
	}
	typedKeys(parsed.NativeRep())
	var errs *celcommon.Errors
	s.checked, errs = checker.Check(parsed.NativeRep(), parsed.Source(), s.checker)
	absent := s.uncheckedSelection()
	if all := errs.GetErrors(); len(all) > 0 {
		wrong := s.explain(all[0])
		if absent == nil || wrong.Line < absent.Line || wrong.Line == absent.Line && wrong.Column < absent.Column {
			return wrong
		}
	}
	return absent
}

// node returns the node with an id; nil: there is none.
func (s *source) node(id int64) ast.Expr {
	var found ast.Expr
	ast.PostOrderVisit(s.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.ID() == id {
			found = e
		}
	}))
	return found
}

func (s *source) typ(e ast.Expr) *cel.Type { return s.checked.GetType(e.ID()) }

// review refuses mistakes that CEL accepts.
func (s *source) review() *Error {
	var wrong *Error
	nodes, ok := s.vars[nodesVar]
	readPaths(s.checked.Expr(), func(p path, e ast.Expr) {
		if wrong == nil && ok && len(p) == 1 && p[0] == nodesVar {
			wrong = s.at(e, "nodes cannot be used as a whole, name one: %s", listFields(nodesVar, nodes))
		}
	})
	ast.PostOrderVisit(s.checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		switch {
		case wrong != nil:
		case e.Kind() == ast.CallKind:
			wrong = s.reviewCall(e.AsCall())
		case e.Kind() == ast.StructKind: // a message of Protocol Buffers
			wrong = s.at(e, "there is no %s", e.AsStruct().TypeName())
		}
	}))
	return cmp.Or(wrong, s.invalidLiteral(), s.unknownValue())
}

// invalidLiteral returns the error of the first invalid duration('…') or timestamp('…').
func (s *source) invalidLiteral() *Error {
	issues := cel.NewIssuesWithSourceInfo(celcommon.NewErrors(celcommon.NewTextSource(s.text)), s.checked.SourceInfo())
	cel.ValidateDurationLiterals().Validate(s.env, nil, s.checked, issues)
	cel.ValidateTimestampLiterals().Validate(s.env, nil, s.checked, issues)
	if issues.Err() == nil {
		return nil
	}
	e := issues.Errors()[0]
	return s.newError(e.Location.Line(), e.Location.Column()+1, e.Message+"; write duration('90m') or timestamp('2030-01-02T15:04:05Z')")
}

// takesOptional has the functions that accept an optional value.
var takesOptional = map[string]bool{
	"value": true, "hasValue": true, "or": true, "orValue": true, "optional.of": true, "optional.ofNonZeroValue": true,
	operators.Conditional: true,
	operators.Index:       true, operators.OptIndex: true, operators.OptSelect: true,
}

func (s *source) reviewCall(call ast.CallExpr) *Error {
	if name := call.FunctionName(); name == "matches" || name == "find" || name == "findAll" {
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
		return s.absent(e)
	}
	return nil
}

// pattern checks a regular expression that is a literal.
func (s *source) pattern(call ast.CallExpr) *Error {
	args := call.Args()
	if !call.IsMemberFunction() { // matches(text, pattern)
		args = args[1:]
	}
	literal, ok := text(args[0])
	if !ok {
		return nil
	}
	if _, err := compilePattern(literal); err != nil {
		return s.at(args[0], "%v", err)
	}
	return nil
}

// optionalOf returns the first argument of a function that is optional; nil: none is.
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
