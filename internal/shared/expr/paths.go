package expr

import (
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"

	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// nodesVar is the variable whose fields [Program.Nodes] returns.
const nodesVar = "nodes"

// A path is a variable and the fields that are selected from it.
type path []string

// A scope maps the variables of comprehensions to their paths; nil: the variable is not a path of one variable.
type scope struct {
	outer *scope
	names map[string]path
}

func (s *scope) find(name string) (path, bool) {
	for ; s != nil; s = s.outer {
		if p, ok := s.names[name]; ok {
			return p, true
		}
	}
	return nil, false
}

// pathsOf returns the paths that a checked expression reads, in the order of the text.
func pathsOf(e ast.Expr) []path {
	var all []path
	readPaths(e, func(p path, _ ast.Expr) { all = append(all, p) })
	return all
}

// readPaths calls found for each path and its node.
func readPaths(e ast.Expr, found func(path, ast.Expr)) {
	walker{found: found}.visit(e, nil)
}

// A walker finds paths.
type walker struct{ found func(path, ast.Expr) }

func (w walker) visit(e ast.Expr, in *scope) {
	if p, others := chain(e, in); p != nil {
		w.found(p, e)
		w.each(in, others...)
		return
	}
	switch e.Kind() {
	case ast.SelectKind:
		w.visit(e.AsSelect().Operand(), in)
	case ast.CallKind:
		if e.AsCall().IsMemberFunction() {
			w.visit(e.AsCall().Target(), in)
		}
		w.each(in, e.AsCall().Args()...)
	case ast.ListKind:
		w.each(in, e.AsList().Elements()...)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			w.each(in, entry.AsMapEntry().Key(), entry.AsMapEntry().Value())
		}
	case ast.ComprehensionKind:
		w.comprehension(e.AsComprehension(), in)
	default: // it reads no variable
	}
}

func (w walker) each(in *scope, all ...ast.Expr) {
	for _, e := range all {
		w.visit(e, in)
	}
}

func (w walker) comprehension(c ast.ComprehensionExpr, in *scope) {
	w.each(in, c.IterRange(), c.AccuInit())
	inner := &scope{outer: in, names: map[string]path{c.IterVar(): nil, c.AccuVar(): nil}}
	if c.HasIterVar2() {
		inner.names[c.IterVar2()] = nil
	}
	result := &scope{outer: in, names: map[string]path{c.AccuVar(): nil}}
	if c.IterRange().Kind() == ast.ListKind && c.IterRange().AsList().Size() == 0 { // optMap: the accumulator is the value
		alias, _ := chain(c.AccuInit(), in)
		result.names[c.AccuVar()] = alias
	}
	w.each(inner, c.LoopCondition(), c.LoopStep())
	w.visit(c.Result(), result)
}

// chain returns the path of an expression, if it is one, and the other expressions in it: indexes and the arguments of
// orValue.
func chain(e ast.Expr, in *scope) (p path, others []ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		name := strings.TrimPrefix(e.AsIdent(), ".")
		if alias, ok := in.find(name); ok && name == e.AsIdent() {
			return slices.Clip(alias), nil
		}
		return path{name}, nil
	case ast.SelectKind:
		p, others = chain(e.AsSelect().Operand(), in)
		return p.field(e.AsSelect().FieldName()), others
	case ast.CallKind:
		return chainCall(e.AsCall(), in)
	default:
		return nil, nil
	}
}

func chainCall(call ast.CallExpr, in *scope) (p path, others []ast.Expr) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.OptSelect, operators.Index, operators.OptIndex:
		name, ok := text(args[1])
		if !ok {
			return nil, nil
		}
		p, others = chain(args[0], in)
		return p.field(name), others
	case "value", "orValue":
		if !call.IsMemberFunction() {
			return nil, nil
		}
		p, others = chain(call.Target(), in)
		return p, append(others, args...)
	}
	return nil, nil
}

func (p path) field(name string) path {
	if p == nil {
		return nil
	}
	return append(slices.Clip(p), name)
}

// text returns the value of a string literal.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// nodesOf returns the fields of nodes that are read, sorted, without duplicates.
func nodesOf(paths []path) []string {
	var all []string
	for _, p := range paths {
		if len(p) > 1 && p[0] == nodesVar && !slices.Contains(all, p[1]) {
			all = append(all, p[1])
		}
	}
	slices.Sort(all)
	return all
}

// selects reports whether one of the paths begins with to.
func selects(paths []path, to []string) bool {
	return slices.ContainsFunc(paths, func(p path) bool {
		return len(p) >= len(to) && slices.Equal(p[:len(to)], to)
	})
}

// Follow finds the value of a path in an input of the type, without CEL. absent is the message of [Env.Compile] if a
// field on the path may be absent.
func (t Type) Follow(p template.Path) (found bool, absent string) {
	w, found := t.walk(p)
	if !found || w.optional < 0 {
		return found, ""
	}
	return true, fmt.Sprintf("%s may be absent: write %s", written(w.all, len(w.all)), withDefault(w.all, w.optional, w.end))
}

// NoValue returns the message about a path without a value, with what to write.
func (t Type) NoValue(p template.Path) string {
	w, _ := t.walk(p)
	return fmt.Sprintf("%s has no value: write %s", written(w.all, len(w.all)), withDefault(w.all, max(w.unsure, 0), w.end))
}

// A walk is a path in a type.
type walk struct {
	all []step
	// optional is the index of the first field that may be absent. unsure is the same, or the index of the first step
	// into a map, a list or any value. -1: there is none.
	optional, unsure int
	end              Type
}

// walk follows a path; false: the path does not exist.
func (t Type) walk(p template.Path) (walk, bool) {
	w := walk{all: []step{{text: "input", itself: true}}, optional: -1, unsure: -1, end: t}
	for i, k := range p {
		next, found := w.end.under(k)
		if !found {
			return w, false
		}
		if next.kind == optionalKind && w.optional < 0 {
			w.optional = i + 1
		}
		if (next.kind == optionalKind || w.end.kind != objectKind) && w.unsure < 0 {
			w.unsure = i + 1
		}
		w.all, w.end = append(w.all, stepOf(k)), next.value()
	}
	return w, true
}

// stepOf returns the step of a key.
func stepOf(k template.Key) step {
	if k.Index >= 0 {
		return step{text: fmt.Sprintf("[%d]", k.Index)}
	}
	return step{text: k.Name, field: true}
}

// under returns the type of the value of a key. It reports false if there is no such key.
func (t Type) under(k template.Key) (Type, bool) {
	isName := k.Index < 0
	switch {
	case t.kind == dynKind:
		return Dyn(), true
	case t.kind == listKind && !isName, t.kind == mapKind && isName:
		return *t.of, true
	case t.kind != objectKind || !isName:
		return Type{}, false
	}
	of, ok := t.fields[k.Name]
	if !ok && t.open != nil {
		return Optional(*t.open), true
	}
	return of, ok
}
