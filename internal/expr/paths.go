package expr

import (
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// nodesVar is the variable whose fields [Program.Nodes] tells.
const nodesVar = "nodes"

// A path is a variable and the fields that are selected of it.
type path []string

// A scope is what names of comprehensions stand for: a path, or nil where it is
// something else than one variable's.
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

// pathsOf are what a checked expression reads of variables, each as far as it
// selects, in the order of the text.
func pathsOf(e ast.Expr) []path {
	var all []path
	readPaths(e, func(p path, _ ast.Expr) { all = append(all, p) })
	return all
}

// readPaths tells each of them with what it is in the expression.
func readPaths(e ast.Expr, found func(path, ast.Expr)) {
	walker{found: found}.visit(e, nil)
}

// A walker finds paths.
type walker struct{ found func(path, ast.Expr) }

func (w walker) visit(e ast.Expr, in *scope) {
	if p, beside := chain(e, in); p != nil {
		w.found(p, e)
		w.each(in, beside...)
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
	default: // it reads nothing
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

// chain is the path that an expression is, if it is one, and what else is in it:
// indexes, and what stands in place of what is absent.
func chain(e ast.Expr, in *scope) (p path, beside []ast.Expr) {
	switch e.Kind() {
	case ast.IdentKind:
		name := strings.TrimPrefix(e.AsIdent(), ".")
		if alias, ok := in.find(name); ok && name == e.AsIdent() {
			return slices.Clip(alias), nil
		}
		return path{name}, nil
	case ast.SelectKind:
		p, beside = chain(e.AsSelect().Operand(), in)
		return p.field(e.AsSelect().FieldName()), beside
	case ast.CallKind:
		return chainCall(e.AsCall(), in)
	default:
		return nil, nil
	}
}

func chainCall(call ast.CallExpr, in *scope) (p path, beside []ast.Expr) {
	args := call.Args()
	switch call.FunctionName() {
	case operators.OptSelect, operators.Index, operators.OptIndex:
		name, ok := text(args[1])
		if !ok {
			return nil, nil
		}
		p, beside = chain(args[0], in)
		return p.field(name), beside
	case "value", "orValue":
		if !call.IsMemberFunction() {
			return nil, nil
		}
		p, beside = chain(call.Target(), in)
		return p, append(beside, args...)
	}
	return nil, nil
}

func (p path) field(name string) path {
	if p == nil {
		return nil
	}
	return append(slices.Clip(p), name)
}

// text is the text that an expression is, if it is a literal.
func text(e ast.Expr) (string, bool) {
	if e.Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := e.AsLiteral().(types.String)
	return string(s), ok
}

// nodesOf are the fields of nodes, each once, in order.
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

// selects reports whether one of the paths leads there, or further.
func selects(paths []path, to []string) bool {
	return slices.ContainsFunc(paths, func(p path) bool {
		return len(p) >= len(to) && slices.Equal(p[:len(to)], to)
	})
}
