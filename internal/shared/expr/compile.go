// Package expr compiles and evaluates expressions in ${{ }} and in fields of Workflows: standard CEL, type-checked
// against what they read.
//
// [FromSchema] converts a JSON Schema to a [Type]; a [Language] has the functions, and its [Env] the variables and
// their types; [Env.Compile] and [Env.Template] compile a text once, into a [Program] or a [Template] that is safe for
// concurrent use over JSON values.
//
// Two checks are stricter than CEL's own. A field that may be absent has to be selected with .? or be tested with has()
// (absent.go), because CEL would find out at run time only. A string literal that is compared with a field of a closed
// set of values has to be one of them.
//
// Authors of expressions, and the models whose output is read, are not trusted with the operator's time and memory.
// Expressions are bounded in length and depth. Expressions for which the parser or the checker need exponential time
// are refused. Evaluation has a cost limit. The functions that Kubernetes' cost estimator charges too
// little for have costs of their own, which are checked before a call (cost.go).
//
// Package celkubernetes adds the functions of Kubernetes, which the runner does not link.
// docs/designs/010-workflow-expressions.md lists which parts of Kubernetes' CEL are used, and why others are not.
package expr

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	celcommon "github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/deckhand-dev/deckhand/internal/shared/celmacros"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
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

// check parses the expression and finds its types. If both CEL's checker and the check for absent fields find an error,
// it returns the one further left.
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

// optionalOf returns the first argument of a function that is optional, or nil.
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

// Limits of expressions.
const (
	// MaxExpression is the maximum length of an expression in characters.
	MaxExpression = 4096
	// MaxDepth is the maximum depth of nested expressions.
	MaxDepth = 50
	// MaxCost is the maximum cost of evaluating an expression: about a unit for each
	// value that is read or created, and for ten bytes of text that are scanned.
	MaxCost = 1_000_000
	// MaxResult bounds the JSON of a value, in bytes.
	MaxResult = 8<<20 + 64<<10
)

// A Language is CEL with a set of functions. It is set up when it is first used, which
// takes some milliseconds.
type Language struct{ base func() (*base, error) }

// base is shared by all environments of a Language.
type base struct {
	env      *cel.Env
	checker  *checker.Env
	bindings map[string]*functions.Overload
	trackers []interpreter.CostTrackerOption
	costs    costs
	names    []string // of the functions that expressions may call
}

// CEL has the functions of CEL and of its extensions.
var CEL = NewLanguage(Functions{})

// Functions are functions that a Language has in addition.
type Functions struct {
	// Libraries declare the functions. Nil: there are none.
	Libraries func() []cel.EnvOption
	// Cost counts the cost of their calls.
	Cost interpreter.ActualCostEstimator
}

// NewLanguage returns CEL with more functions.
func NewLanguage(more Functions) *Language {
	return &Language{base: sync.OnceValues(func() (*base, error) {
		b, err := newBase(more)
		if err != nil {
			return nil, fmt.Errorf("setting up CEL: %w", err)
		}
		return b, nil
	})}
}

func newBase(more Functions) (*base, error) {
	options, err := celmacros.Optional(tooComplicated)
	if err != nil {
		return nil, err
	}
	if more.Libraries != nil {
		options = append(options, more.Libraries()...)
	}
	env, err := cel.NewCustomEnv(slices.Concat(libraries(), options, ownFunctions())...)
	if err != nil {
		return nil, err
	}
	b := &base{env: env, bindings: map[string]*functions.Overload{}, costs: costs{more.Cost}}
	if b.checker, err = checker.NewEnv(env.Container, env.CELTypeProvider(), checker.CrossTypeNumericComparisons(true)); err != nil {
		return nil, err
	}
	declared := env.Functions() // a copy
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		if err := b.add(name, declared[name]); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// libraries returns the libraries of CEL that every Language has.
func libraries() []cel.EnvOption {
	return []cel.EnvOption{
		cel.StdLib(),
		cel.DefaultUTCTimeZone(true),
		cel.EnableIdentifierEscapeSyntax(),
		cel.EnableHiddenAccumulatorName(true),
		cel.ParserExpressionSizeLimit(MaxExpression),
		cel.ParserRecursionLimit(MaxDepth),
		ext.Strings(),
		ext.Lists(),
		ext.Math(),
		ext.Sets(),
		ext.TwoVarComprehensions(),
	}
}

func (b *base) add(name string, f *decls.FunctionDecl) error {
	if err := b.checker.AddFunctions(f); err != nil {
		return err
	}
	if !strings.ContainsAny(name, "@_") {
		b.names = append(b.names, name)
	}
	b.trackers = append(b.trackers, trackers(f)...)
	bindings, err := f.Bindings()
	for _, o := range bindings {
		b.bindings[o.Operator] = o
	}
	return err
}

// An Env has the variables that expressions may read. It is safe for concurrent use.
type Env struct {
	*base
	vars    map[string]Type
	objects objects
	checker *checker.Env
}

// NewEnv returns an Env of variables and their types.
func (l *Language) NewEnv(vars map[string]Type) (*Env, error) {
	b, err := l.base()
	if err != nil {
		return nil, err
	}
	e := &Env{base: b, vars: maps.Clone(vars), objects: objects{}}
	declared := make([]*decls.VariableDecl, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if err := e.objects.add(vars[name]); err != nil {
			return nil, err
		}
		declared = append(declared, decls.NewVariable(name, vars[name].celType()))
	}
	fields, err := newProvider(e.objects)
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	e.checker, err = checker.NewEnv(b.env.Container, fields, checker.CrossTypeNumericComparisons(true), checker.ValidatedDeclarations(b.checker))
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	if err := e.checker.AddIdents(declared...); err != nil {
		return nil, fmt.Errorf("declaring variables: %w", err)
	}
	return e, nil
}
