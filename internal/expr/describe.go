package expr

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// A step of an expression that is a path: a variable, a field, an index.
type step struct {
	text     string // as it is written after what is before
	optional bool   // there may be none
	itself   bool   // it is there and may be of no value: no question mark asks for it
	field    bool
}

// steps are those of a path; nil: it is none.
func (s *source) steps(e ast.Expr) []step {
	var from ast.Expr
	var last step
	switch e.Kind() {
	case ast.IdentKind:
		if strings.HasPrefix(e.AsIdent(), "@") {
			return nil
		}
		return []step{{text: strings.TrimPrefix(e.AsIdent(), "."), optional: isOptional(s.typ(e)), itself: true}}
	case ast.SelectKind:
		from, last = e.AsSelect().Operand(), step{text: e.AsSelect().FieldName(), field: true}
	case ast.CallKind:
		return s.callSteps(e)
	default:
		return nil
	}
	return s.after(from, last)
}

// after adds a step to those of what it is taken of.
func (s *source) after(from ast.Expr, last step) []step {
	if before := s.steps(from); before != nil {
		return append(slices.Clip(before), last)
	}
	return nil
}

func (s *source) callSteps(e ast.Expr) []step {
	args := e.AsCall().Args()
	switch function := e.AsCall().FunctionName(); function {
	case sameFunction, flatFunction:
		all := s.steps(args[0])
		if len(all) > 0 {
			last := &all[len(all)-1]
			last.optional, last.itself = true, !last.optional
		}
		return all
	case "dyn", "double", sortedFunction:
		if args[0].ID() >= inside { // it was put in
			return s.steps(args[0])
		}
	case operators.OptSelect:
		name, _ := text(args[1])
		return s.after(args[0], step{text: name, field: true, optional: true})
	case operators.Index, operators.OptIndex:
		if args[1].Kind() == ast.LiteralKind {
			return s.after(args[0], step{text: fmt.Sprintf("[%s]", literalText(args[1])), optional: function == operators.OptIndex})
		}
	}
	return nil
}

func literalText(e ast.Expr) string {
	if s, ok := text(e); ok {
		return fmt.Sprintf("%q", s)
	}
	return fmt.Sprint(e.AsLiteral().Value())
}

// isName is what can stand after a dot as it is, unless it is reserved.
var (
	isName   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	reserved = map[string]bool{"in": true, "true": true, "false": true, "null": true}
)

// written is a path with a question mark before the step of that index.
func written(all []step, asked int) string {
	var b strings.Builder
	for i, s := range all {
		name := s.text
		if s.field && !isName.MatchString(name) || reserved[name] {
			name = "`" + name + "`"
		}
		switch {
		case s.field && i == asked:
			b.WriteString(".?" + name)
		case s.field:
			b.WriteString("." + name)
		case i == asked && !s.itself:
			b.WriteString("[?" + name[1:])
		default:
			b.WriteString(name)
		}
	}
	return b.String()
}

// describe is an expression as people call it.
func (s *source) describe(e ast.Expr) string {
	if all := s.steps(e); all != nil {
		return written(all, -1)
	}
	return "this"
}

// absent says what to write in place of what may be absent.
func (s *source) absent(e ast.Expr) *Error { return s.at(e, "%s", s.guard(e)) }

func (s *source) guard(e ast.Expr) string {
	all := s.steps(e)
	t := s.objects.fromCEL(s.typ(e)).value()
	if all == nil {
		return fmt.Sprintf("this may be absent: put .orValue(%s) after it, which says what stands in its place, or .hasValue(), which says whether it is there", instead(t))
	}
	first := max(slices.IndexFunc(all, func(one step) bool { return one.optional }), 0)
	value := all
	if t.kind == objectKind && len(t.fields) > 0 {
		name := t.example()
		value, t = append(slices.Clip(all), step{text: name, field: true}), t.fields[name].value()
	}
	return fmt.Sprintf("%s may be absent: write %s.orValue(%s), which says what stands in its place, or %s.hasValue(), which says whether it is there",
		written(all, -1), written(value, len(value)-1), instead(t), written(all[:first+1], first))
}

// example is the field of an object that shows best how one is read: one that is
// always there, and simple.
func (t Type) example() string {
	best := t.Fields()[0]
	for _, name := range t.Fields() {
		if of := t.fields[name]; of.of == nil && of.kind != objectKind {
			return name
		}
	}
	return best
}

// instead is a value of a type that can be written.
func instead(t Type) string {
	return map[kind]string{intKind: "0", doubleKind: "0.0", boolKind: "false", listKind: "[]", mapKind: "{}", objectKind: "{}"}[t.kind] +
		map[kind]string{stringKind: `""`, dynKind: `""`}[t.kind]
}

// unfit says that an expression has not the type that it should.
func (s *source) unfit(e ast.Expr, typ, want Type) *Error {
	why := typ.fits(want)
	switch {
	case typ.kind == optionalKind:
		return s.absent(e)
	case want.kind == boolKind && typ.kind == stringKind:
		why += `; compare it, as in x == "…"`
	case want.kind == boolKind:
		why += "; compare it, as in x > 3"
	case want.kind == stringKind && typ.of == nil && typ.kind != objectKind:
		why += "; write string(…)"
	}
	return s.wrong(1, 1, fmt.Sprintf("this must be %s; it %s", a(want), why))
}

// has says what fields there are.
func has(name string, t Type) string {
	return name + " has " + list(t.Fields())
}

// list is names for people.
func list(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "nothing in it"
	}
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return strings.Join(names, ", ")
}

// similar is the name that somebody may have meant, with the words around it.
func similar(name string, names []string) string {
	best, most := "", 1+len(name)/4
	for _, n := range names {
		if d := distance(name, n); d <= most {
			best, most = n, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// distance is how many letters are to be changed to make one word of another.
func distance(from, to string) int {
	if len(from) > 64 || len(to) > 64 {
		return 64
	}
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		before := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replaced := before
			if from[i] != to[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, before+1, row[j]+1)
		}
	}
	return row[len(to)]
}

// kindOf is a type of CEL for people.
func (s *source) kindOf(e ast.Expr) string {
	t := s.typ(e)
	if t == nil {
		return "a value"
	}
	switch t.Kind() {
	case types.TimestampKind:
		return "a timestamp"
	case types.DurationKind:
		return "a duration"
	case types.BytesKind:
		return "bytes"
	case types.NullTypeKind:
		return "null"
	default:
		return a(s.objects.fromCEL(t))
	}
}
