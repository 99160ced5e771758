package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// uncheckedSelection returns the error of the first plain selection of a field that may
// be absent: CEL accepts it, and evaluation would fail. A selection is allowed after a
// test with has() or hasValue(), as in has(x.f) && x.f > 3.
func (s *source) uncheckedSelection() *Error {
	g := &guards{source: s}
	at := forValue
	if s.want.kind == optionalKind {
		at = forOptional
	}
	g.visit(s.checked.Expr(), nil, at)
	return g.found
}

// guards walks an expression with the facts that hold at each node.
type guards struct {
	*source
	found *Error
}

// use is how a value is used.
type use uint8

const (
	forValue    use = iota // it has to be present
	forOptional            // it may be absent, as the target of orValue
)

// A fact is the path of a field that is present: its steps, each with a newline.
type fact string

func factOf(steps []step) fact {
	var b strings.Builder
	for _, one := range steps {
		b.WriteString(one.text + "\n")
	}
	return fact(b.String())
}

// visit checks a node.
func (g *guards) visit(e ast.Expr, known []fact, as use) {
	if g.found != nil {
		return
	}
	if all := g.steps(e); all != nil {
		g.path(e, all, known, as)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		g.field(e, known)
	case ast.CallKind:
		g.call(e.AsCall(), known)
	case ast.ListKind:
		for _, item := range e.AsList().Elements() {
			g.visit(item, known, forValue)
		}
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			g.visit(entry.AsMapEntry().Key(), known, forValue)
			as := forValue
			if entry.AsMapEntry().IsOptional() {
				as = forOptional
			}
			g.visit(entry.AsMapEntry().Value(), known, as)
		}
	case ast.ComprehensionKind:
		g.comprehension(e.AsComprehension(), known)
	default: // it has no selection
	}
}

// path checks a variable and the fields that are selected from it.
func (g *guards) path(e ast.Expr, all []step, known []fact, as use) {
	first := -1
	for i, one := range all {
		if one.unmarked && !isKnown(known, factOf(all[:i+1])) {
			first = i
			break
		}
	}
	if first < 0 {
		return
	}
	if isTest(e) {
		if first < len(all)-1 {
			g.found = g.at(e, "%s may be absent: write has(%s)", written(all[:first+1], len(all)), written(all[:len(all)-1], first)+written(all[len(all)-1:], 1))
		}
		return
	}
	if t := g.typ(e); t == nil || present(t).Kind() == types.ErrorKind {
		return // a field that does not exist is reported
	}
	if as == forOptional {
		g.found = g.at(e, "%s may be absent: write %s", written(all, len(all)), written(all, first))
		return
	}
	g.found = g.absent(e)
}

// field checks a selection from something that is not a path.
func (g *guards) field(e ast.Expr, known []fact) {
	sel := e.AsSelect()
	g.visit(sel.Operand(), known, forValue)
	if g.found != nil || sel.IsTestOnly() || !g.isUnmarked(e) {
		return
	}
	t := g.objects.fromCEL(g.typ(e)).value()
	name := quotedName(sel.FieldName())
	g.found = g.at(e, "%s may be absent: write .?%s.orValue(%s)", name, name, defaultLiteral(t))
}

func (g *guards) call(call ast.CallExpr, known []fact) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.LogicalAnd:
		g.visit(args[0], known, forValue)
		g.visit(args[1], slices.Concat(known, g.facts(args[0], true)), forValue)
		return
	case operators.LogicalOr:
		g.visit(args[0], known, forValue)
		g.visit(args[1], slices.Concat(known, g.facts(args[0], false)), forValue)
		return
	case operators.Conditional:
		g.visit(args[0], known, forValue)
		g.visit(args[1], slices.Concat(known, g.facts(args[0], true)), forValue)
		g.visit(args[2], slices.Concat(known, g.facts(args[0], false)), forValue)
		return
	case operators.Equals, operators.NotEquals:
		for i, other := range []ast.Expr{args[1], args[0]} {
			if all := g.steps(args[i]); all != nil && isNull(other) && g.found == nil {
				g.found = g.neverNull(args[i], all)
			}
		}
	}
	if call.IsMemberFunction() {
		as := forValue
		if takesOptional[call.FunctionName()] {
			as = forOptional
		}
		g.visit(call.Target(), known, as)
	}
	for _, arg := range args {
		g.visit(arg, known, forValue)
	}
}

func (g *guards) comprehension(c ast.ComprehensionExpr, known []fact) {
	g.visit(c.IterRange(), known, forValue)
	g.visit(c.AccuInit(), known, forValue)
	inner := slices.DeleteFunc(slices.Clone(known), func(f fact) bool {
		name, _, _ := strings.Cut(string(f), "\n")
		return name == c.IterVar() || name == c.IterVar2() || name == c.AccuVar()
	})
	g.visit(c.LoopCondition(), inner, forValue)
	g.visit(c.LoopStep(), inner, forValue)
	g.visit(c.Result(), inner, forValue)
}

// facts returns the fields that are present if a condition is true, or false.
func (g *guards) facts(e ast.Expr, is bool) []fact { //nolint:revive // it is the value of the condition
	if isTest(e) {
		if all := g.steps(e); is && all != nil {
			return []fact{factOf(all)}
		}
		return nil
	}
	if e.Kind() != ast.CallKind {
		return nil
	}
	switch call := e.AsCall(); call.FunctionName() {
	case operators.LogicalNot:
		return g.facts(call.Args()[0], !is)
	case operators.LogicalAnd, operators.LogicalOr:
		if is == (call.FunctionName() == operators.LogicalAnd) {
			return slices.Concat(g.facts(call.Args()[0], is), g.facts(call.Args()[1], is))
		}
	case "hasValue":
		if all := g.steps(call.Target()); is && call.IsMemberFunction() && all != nil {
			return []fact{factOf(all)}
		}
	}
	return nil
}

// isKnown reports whether a field is present: it, or a field in it, was tested.
func isKnown(known []fact, of fact) bool {
	return slices.ContainsFunc(known, func(f fact) bool { return strings.HasPrefix(string(f), string(of)) })
}

func isNull(e ast.Expr) bool { return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue }

// neverNull returns the error of a comparison with null, which an absent value is not.
func (s *source) neverNull(e ast.Expr, all []step) *Error {
	first := slices.IndexFunc(all, func(one step) bool { return one.optional })
	if first < 0 {
		return nil
	}
	return s.at(e, "%s may be absent, but is never null: write %s.hasValue()", written(all, len(all)), written(all, first))
}

// isTest reports whether a node is has().
func isTest(e ast.Expr) bool { return e.Kind() == ast.SelectKind && e.AsSelect().IsTestOnly() }

// isUnmarked reports whether a node selects a field that may be absent without .?. A selection from an optional value
// is optional itself.
func (s *source) isUnmarked(e ast.Expr) bool {
	of := s.typ(e.AsSelect().Operand())
	f, ok := s.objects.field(of, e.AsSelect().FieldName())
	return ok && f.kind == optionalKind && !isOptional(of)
}

// absent returns the error for a value that may be absent, with what to write instead.
func (s *source) absent(e ast.Expr) *Error {
	all := s.steps(e)
	t := s.objects.fromCEL(s.typ(e)).value()
	first := slices.IndexFunc(all, func(one step) bool { return one.optional })
	var wrong *Error
	if all == nil {
		wrong = s.at(e, "this may be absent: write .orValue(%s) after it", defaultLiteral(t))
	} else {
		wrong = s.at(e, "%s may be absent: write %s", written(all, len(all)), withDefault(all, max(first, 0), t))
	}
	wrong.Absent = true
	return wrong
}

// withDefault returns what to write for a path that may be absent from the step at an index on.
func withDefault(all []step, first int, t Type) string {
	if t.kind == objectKind && len(t.fields) > 0 {
		name := t.example()
		all, t = append(slices.Clip(all), step{text: name, field: true}), t.fields[name].value()
	}
	return fmt.Sprintf("%s.orValue(%s)", written(all, first), defaultLiteral(t))
}

// example returns the field of an object to show in a message: one of a scalar type, if
// there is one.
func (t Type) example() string {
	all := t.Fields()
	i := slices.IndexFunc(all, func(name string) bool { of := t.fields[name]; return of.of == nil && of.kind != objectKind })
	return all[max(i, 0)]
}

// defaultLiteral returns a literal of a type.
func defaultLiteral(t Type) string {
	return cmp.Or(map[kind]string{intKind: "0", doubleKind: "0.0", boolKind: "false", listKind: "[]", mapKind: "{}", objectKind: "{}"}[t.kind], "''")
}

// quotedName returns the name of a field in the form after a dot.
func quotedName(name string) string {
	if !isName.MatchString(name) || reserved[name] {
		return fmt.Sprintf("`%s`", name)
	}
	return name
}
