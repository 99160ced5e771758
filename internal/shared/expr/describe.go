package expr

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
)

// A step is a part of a path: a variable, a field or an index.
type step struct {
	text     string // as written after the previous step
	optional bool   // it may be absent
	unmarked bool   // it may be absent and is selected without .?
	itself   bool   // the value is an optional: the question mark goes to the next step
	field    bool
}

// steps returns the steps of a path; nil: the node is not a path.
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
		unmarked := s.isUnmarked(e)
		from, last = e.AsSelect().Operand(), step{text: e.AsSelect().FieldName(), field: true, optional: unmarked, unmarked: unmarked}
	case ast.CallKind:
		return s.callSteps(e)
	default:
		return nil
	}
	return s.after(from, last)
}

// after adds a step to the steps of its operand.
func (s *source) after(from ast.Expr, last step) []step {
	if before := s.steps(from); before != nil {
		return append(slices.Clip(before), last)
	}
	return nil
}

func (s *source) callSteps(e ast.Expr) []step {
	args := e.AsCall().Args()
	switch function := e.AsCall().FunctionName(); function {
	case elementFunction, rangeFunction:
		return s.steps(args[0])
	case operators.OptSelect:
		name, _ := text(args[1])
		return s.after(args[0], step{text: name, field: true, optional: true})
	case operators.Index, operators.OptIndex:
		if args[1].Kind() == ast.LiteralKind {
			element := isOptional(s.typ(e)) && !isOptional(s.typ(args[0])) && function == operators.Index
			return s.after(args[0], step{text: fmt.Sprintf("[%s]", literalText(args[1])), optional: element || function == operators.OptIndex, itself: element})
		}
	}
	return nil
}

func literalText(e ast.Expr) string {
	if s, ok := text(e); ok {
		return quote(s)
	}
	return fmt.Sprint(e.AsLiteral().Value())
}

// isName matches the names that need no backticks after a dot, unless they are reserved.
var (
	isName   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	reserved = map[string]bool{"in": true, "true": true, "false": true, "null": true}
)

// written returns a path with question marks from the step of an index on, at each step
// that allows one.
func written(all []step, from int) string {
	var b strings.Builder
	for i, s := range all {
		mark := ""
		if i > from || i == from && !s.itself {
			mark = "?"
		}
		switch {
		case s.field:
			b.WriteString("." + mark + quotedName(s.text))
		case i > 0:
			b.WriteString("[" + mark + s.text[1:])
		default:
			b.WriteString(s.text)
		}
	}
	return b.String()
}

// describe names an expression in a message.
func (s *source) describe(e ast.Expr) string {
	if all := s.steps(e); all != nil {
		return written(all, len(all))
	}
	return "this"
}

// unfit returns the error of an expression that does not have the wanted type.
func (s *source) unfit(e ast.Expr, typ, want Type) *Error {
	why := typ.fits(want)
	switch {
	case typ.kind == optionalKind:
		return s.absent(e)
	case want.kind == boolKind && typ.kind == stringKind:
		why += "; compare it, as in x == '…'"
	case want.kind == boolKind:
		why += "; compare it, as in x > 3"
	case want.kind == stringKind && typ.of == nil && typ.kind != objectKind:
		why += "; write string(…)"
	}
	return s.newError(1, 1, fmt.Sprintf("this must be %s; it %s", a(want), why))
}

// listFields lists the fields of a type for a message.
func listFields(name string, t Type) string {
	return name + " has " + joinNames(t.Fields())
}

// joinNames joins names for a message.
func joinNames(names []string) string {
	const most = 20
	if len(names) == 0 {
		return "no fields"
	}
	if len(names) > most {
		names = append(names[:most:most], "…")
	}
	return strings.Join(names, ", ")
}

// kindOf describes the type of a node in a message.
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
	case types.OpaqueKind, types.StructKind:
		if k, ok := kubernetesKinds[t.TypeName()]; ok {
			return k.name
		}
		return a(s.objects.fromCEL(t))
	default:
		return a(s.objects.fromCEL(t))
	}
}

// kubernetesKinds has the types of Kubernetes' libraries and how to convert them to
// JSON.
var kubernetesKinds = map[string]struct{ name, convert string }{
	"kubernetes.Quantity":    {"a quantity", "compare it, or write .asApproximateFloat() after it"},
	"kubernetes.URL":         {"a URL", "read a part of it, as in .getHost()"},
	"kubernetes.Semver":      {"a semantic version", "compare it, or read a part of it, as in .major()"},
	"kubernetes.NamedFormat": {"a format", "write .validate(…) after it"},
	"net.IP":                 {"an IP address", "write string(…)"},
	"net.CIDR":               {"a CIDR", "write string(…)"},
}

// notJSON returns how to convert a type that JSON does not have, or an empty text.
func (s *source) notJSON(e ast.Expr) string {
	t := s.typ(e)
	if kind := t.Kind(); kind == types.BytesKind || kind == types.TypeKind {
		return "write string(…)"
	}
	return kubernetesKinds[t.TypeName()].convert
}

// maxNesting is the maximum depth of the JSON of a value.
const maxNesting = 1000

// encode encodes a value as JSON, deterministically: names are sorted, whole numbers
// are exact. Absent fields of an object are left out. Absent elements of a list are
// null, so that other elements keep their index.
func encode(v ref.Val) (json.RawMessage, error) {
	var e encoder
	if err := e.value(v, 0); err != nil {
		return nil, err
	}
	return e.b.Bytes(), nil
}

type encoder struct{ b bytes.Buffer }

func (e *encoder) value(v ref.Val, depth int) error {
	switch {
	case e.b.Len() > MaxResult:
		return fmt.Errorf("the value has more than %d bytes of JSON", MaxResult)
	case depth > maxNesting:
		return fmt.Errorf("the value is nested deeper than %d", maxNesting)
	}
	switch v := v.(type) {
	case *types.Optional:
		if !v.HasValue() {
			e.b.WriteString("null")
			return nil
		}
		return e.value(v.GetValue(), depth)
	case *types.Err:
		return v
	case traits.Lister:
		return e.list(v, depth)
	case traits.Mapper:
		return e.object(v, depth)
	}
	return e.scalar(v)
}

func (e *encoder) scalar(v ref.Val) error {
	switch v := v.(type) {
	case types.String:
		return e.string(string(v))
	case types.Int:
		e.b.WriteString(strconv.FormatInt(int64(v), 10))
	case types.Uint:
		e.b.WriteString(strconv.FormatUint(uint64(v), 10))
	case types.Bool:
		e.b.WriteString(strconv.FormatBool(bool(v)))
	case types.Null:
		e.b.WriteString("null")
	case types.Double:
		return e.double(float64(v))
	case types.Timestamp, types.Duration:
		s, _ := v.ConvertToType(types.StringType).(types.String)
		return e.string(string(s))
	case types.Bytes:
		return errors.New("JSON has no type for bytes; write string(…) if they are text")
	default:
		return fmt.Errorf("JSON has no type for a %s", v.Type().TypeName())
	}
	return nil
}

func (e *encoder) double(f float64) error {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return fmt.Errorf("JSON cannot represent the number %v", f)
	}
	raw, err := json.Marshal(f)
	e.b.Write(raw)
	return err
}

// string writes a string without the escapes for HTML.
func (e *encoder) string(s string) error {
	if e.b.Len()+len(s) > MaxResult {
		return fmt.Errorf("the value has more than %d bytes of JSON", MaxResult)
	}
	if needsNoEscape(s) {
		e.b.WriteString(`"` + s + `"`)
		return nil
	}
	encoder := json.NewEncoder(&e.b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(s); err != nil {
		return err
	}
	e.b.Truncate(e.b.Len() - 1) // the newline
	return nil
}

// needsNoEscape reports whether JSON has a string unchanged.
func needsNoEscape(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c > '~' {
			return false
		}
	}
	return true
}

func (e *encoder) list(v traits.Lister, depth int) error {
	e.b.WriteByte('[')
	for i, n := types.Int(0), v.Size(); i.Compare(n) == types.IntNegOne; i++ {
		if i > 0 {
			e.b.WriteByte(',')
		}
		if err := e.value(v.Get(i), depth+1); err != nil {
			return err
		}
	}
	e.b.WriteByte(']')
	return nil
}

func (e *encoder) object(v traits.Mapper, depth int) error {
	names, err := namesOf(v)
	if err != nil {
		return err
	}
	e.b.WriteByte('{')
	for i, name := range names {
		if i > 0 {
			e.b.WriteByte(',')
		}
		if err := e.string(name); err != nil {
			return err
		}
		e.b.WriteByte(':')
		if err := e.value(v.Get(types.String(name)), depth+1); err != nil {
			return err
		}
	}
	e.b.WriteByte('}')
	return nil
}

// namesOf returns the names of the fields of an object that are present, sorted.
func namesOf(v traits.Mapper) ([]string, error) {
	var names []string
	for it := v.Iterator(); it.HasNext() == types.True; {
		name, ok := it.Next().(types.String)
		if !ok {
			return nil, errors.New("the keys of an object must be strings; write the key in quotes")
		}
		if optional, ok := v.Get(name).(*types.Optional); !ok || optional.HasValue() {
			names = append(names, string(name))
		}
	}
	slices.Sort(names)
	return names, nil
}
