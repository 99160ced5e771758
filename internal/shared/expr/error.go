package expr

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/cel-go/cel"
	celcommon "github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"

	"github.com/deckhand-dev/deckhand/internal/shared/celhints"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// An Error is an error of an expression with its position.
type Error struct {
	// Expression is its text.
	Expression string
	// Line and Column count characters from 1, in the expression or in the whole text
	// of a template.
	Line, Column int
	Message      string
	// Absent is set if the expression needs a value that may be absent.
	Absent bool
}

func (e *Error) Error() string {
	where := fmt.Sprintf("column %d", e.Column)
	if e.Line > 1 {
		where = fmt.Sprintf("line %d, column %d", e.Line, e.Column)
	}
	if e.Expression == "" {
		return where + ": " + e.Message
	}
	return fmt.Sprintf("%s of %q: %s", where, shorten(e.Expression), e.Message)
}

// At returns the error with its position in a text that contains the expression at a position.
func (e *Error) At(line, column int) *Error {
	moved := *e
	if moved.Line == 1 {
		moved.Column += column - 1
	}
	moved.Line += line - 1
	return &moved
}

// A TooLongError is the error of a text that exceeds its limit.
type TooLongError struct {
	// Expression is the expression with the longest value; empty if the text without
	// values is too long.
	Expression string
	// Bytes is the length of the value of Expression, or of the text without values.
	Bytes int
	// Limit is the maximum length of the text with its values.
	Limit int
}

func (e *TooLongError) Error() string {
	if e.Expression == "" {
		return fmt.Sprintf("the text has %d bytes without any values; at most %d are allowed", e.Bytes, e.Limit)
	}
	return fmt.Sprintf("the text has more than %d bytes; %d of them are the value of %q", e.Limit, e.Bytes, shorten(e.Expression))
}

// maxQuoted and maxMessage are the maximum lengths of the expression in an error and of its message, in characters.
const maxQuoted, maxMessage = 100, 1000

// shorten returns an expression as errors quote it.
func shorten(s string) string { return cut(strings.TrimSpace(s), maxQuoted) }

func cut(s string, most int) string {
	if runes := []rune(s[:min(len(s), 4*most)]); len(runes) > most {
		return string(runes[:most]) + "…"
	}
	return s
}

// syntax converts a syntax error.
func (s *source) syntax(e *celcommon.Error) *Error {
	wrong := s.newError(e.Location.Line(), e.Location.Column()+1, celhints.Message(e))
	switch {
	case strings.Contains(wrong.Message, "expression code point size exceeds limit"):
		wrong.Message = fmt.Sprintf("the expression is longer than %d characters; make it shorter", MaxExpression)
	case strings.Contains(wrong.Message, "recursion"):
		wrong.Message = fmt.Sprintf("the expression is nested deeper than %d; make it simpler", MaxDepth)
	default:
		wrong.Message = celhints.Append(wrong.Message, s.text, wrong.Line, wrong.Column, hints)
	}
	return wrong
}

// hints are tried in their order.
var hints = append([]celhints.Hint{
	{Message: "token recognition", After: "=~", Text: "write x.matches('…')"},
	{Message: "token recognition", After: "$", Text: "this is an expression already: leave out ${{ and }}"},
	{Message: "'.in'", Text: "the word is reserved in CEL: write `in`, in backticks"},
	{Message: "null'", Before: ".", Text: "the word is reserved in CEL: write `null`, in backticks"},
	{Message: "true'", Before: ".", Text: "the word is reserved in CEL: write `true`, in backticks"},
	{Message: "false'", Before: ".", Text: "the word is reserved in CEL: write `false`, in backticks"},
}, celhints.Syntax...)

// quoted matches the first quoted name of a message.
var quoted = regexp.MustCompile(`'([^']*)'`)

// explain converts an error of CEL's checker.
func (s *source) explain(e *celcommon.Error) *Error {
	wrong := s.newError(e.Location.Line(), e.Location.Column()+1, celhints.Message(e))
	node := s.node(e.ExprID)
	name := ""
	if found := quoted.FindStringSubmatch(e.Message); found != nil {
		name = found[1]
	}
	if node == nil {
		return wrong
	}
	switch {
	case strings.HasPrefix(e.Message, "undefined field"):
		return s.unknownField(node, wrong)
	case strings.HasPrefix(e.Message, "undeclared reference"):
		return s.unknownName(node, name)
	case strings.HasPrefix(e.Message, "found no matching overload") && node.Kind() == ast.CallKind:
		return s.mismatch(node)
	case strings.HasPrefix(e.Message, "expected type"):
		return s.unexpected(node, name)
	case strings.Contains(e.Message, "does not support field selection"):
		of, _, _ := fieldOf(node)
		if isOptional(s.typ(of)) {
			return s.at(of, "%s is an optional in an optional; write .orValue(optional.none()) after it", s.describe(of))
		}
		return s.at(of, "%s is %s and has no fields", s.describe(of), s.kindOf(of))
	case strings.Contains(e.Message, "range of a comprehension"):
		if isOptional(s.typ(node)) {
			return s.absent(node)
		}
		return s.at(node, "%s is %s, not a list", s.describe(node), s.kindOf(node))
	}
	return wrong
}

// fieldOf returns the operand and the field of a selection.
func fieldOf(e ast.Expr) (of ast.Expr, field string, ok bool) {
	switch {
	case e.Kind() == ast.SelectKind:
		return e.AsSelect().Operand(), e.AsSelect().FieldName(), true
	case e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.OptSelect:
		field, ok = text(e.AsCall().Args()[1])
		return e.AsCall().Args()[0], field, ok
	}
	return e, "", false
}

func (s *source) unknownField(e ast.Expr, wrong *Error) *Error {
	of, field, ok := fieldOf(e)
	if !ok {
		return wrong
	}
	t := s.objects.fromCEL(s.typ(of)).value()
	hint := template.Similar(field, t.Fields())
	// CEL's position is the position of the dot, or of has.
	_, rest := celhints.SplitLine(s.text, wrong.Line, wrong.Column)
	if at := strings.Index(rest, field); at >= 0 {
		wrong.Column += utf8.RuneCountInString(rest[:at])
		hint = cmp.Or(hyphenated(rest[at:], t.Fields()), hint)
	}
	wrong.Message = fmt.Sprintf("there is no field %s; %s%s", field, listFields(s.describe(of), t), hint)
	return wrong
}

// dashed matches a name with hyphens, which CEL reads as subtraction.
var dashed = regexp.MustCompile(`^\w+(-\w+)+`)

// hyphenated returns a hint for a name with hyphens at the start of a text.
func hyphenated(text string, names []string) string {
	for name := dashed.FindString(text); name != ""; name = name[:max(0, strings.LastIndex(name, "-"))] {
		if read := strings.ReplaceAll(name, "-", "_"); slices.Contains(names, read) {
			return fmt.Sprintf("; - is minus here: write %s", read)
		}
	}
	return ""
}

// elsewhere describes where names are available that only other expressions have.
var elsewhere = map[string]string{ //nolint:gosec // G101: what messages say of Secrets
	"item":     "item is read in a node with forEach only",
	"index":    "index is read in a node with forEach only",
	"previous": "previous is read in a node with loop only",
	"self":     "self is read in loop.until only",
	"secrets":  "no prompt or input has the value of a Secret: name the Secret in the Model or Toolset that needs it",
}

// isOfKubernetes reports whether a name is of a function that package celkubernetes adds.
func isOfKubernetes(name string) bool { return slices.Contains(functionsOfKubernetes, name) }

var functionsOfKubernetes = strings.Fields(`add asApproximateFloat asInteger cidr compareTo containsCIDR containsIP dns1035Label
	dns1035LabelPrefix dns1123Label dns1123LabelPrefix dns1123Subdomain dns1123SubdomainPrefix family find findAll format.named getEscapedPath
	getHost getHostname getPort getQuery getScheme includes ip ip.isCanonical isCIDR isGlobalUnicast isGreaterThan isIP isInteger isLessThan
	isLinkLocalMulticast isLinkLocalUnicast isLoopback isQuantity isSemver isSorted isURL isUnspecified major masked max min minor patch
	prefixLength quantity semver sign sub sum url validate`)

func (s *source) unknownName(e ast.Expr, name string) *Error {
	if e.Kind() == ast.CallKind {
		where := s.checked.SourceInfo().GetStartLocation(e.ID())
		hint := template.Similar(name, s.names)
		if isOfKubernetes(name) {
			hint = "; it is a function of Kubernetes, which only Workflows have"
		}
		return s.newError(where.Line(), where.Column()+1, fmt.Sprintf("there is no function %s%s", name, hint))
	}
	vars := slices.Sorted(maps.Keys(s.vars))
	hint := template.Similar(name, vars)
	switch {
	case elsewhere[name] != "":
		hint = "; " + elsewhere[name]
	case hint == "":
		hint = "; strings need quotes, as in " + quote(name)
	}
	return s.at(e, "there is no %s; an expression here reads %s%s", name, joinNames(vars), hint)
}

// unexpected returns the error of an operand of &&, || or ?: that is not a bool.
func (s *source) unexpected(e ast.Expr, want string) *Error {
	if isOptional(s.typ(e)) {
		return s.absent(e)
	}
	return s.at(e, "%s must be a %s; it is %s", s.describe(e), want, s.kindOf(e))
}

// mismatch returns the error of a function with arguments of other types.
func (s *source) mismatch(e ast.Expr) *Error {
	call := e.AsCall()
	all := call.Args()
	if call.IsMemberFunction() {
		all = append([]ast.Expr{call.Target()}, all...)
	}
	symbol, isOperator := operators.FindReverse(call.FunctionName())
	if optional := s.optionalOf(call); optional != nil && !takesOptional[call.FunctionName()] {
		return s.absent(optional)
	}
	switch name := call.FunctionName(); {
	case name == keyFunction:
		return s.at(all[0], "the keys of an object must be strings; this is %s: write it in quotes, or string(…)", s.kindOf(all[0]))
	case name == operators.Index && s.typ(all[0]).Kind() == types.StructKind:
		return s.at(all[0], "%s is an object: write %s.%s", s.describe(all[0]), s.describe(all[0]), cmp.Or(literalName(all[1]), "name for its field name"))
	case takesOptional[name] && call.IsMemberFunction() && !isOptional(s.typ(all[0])):
		return s.at(all[0], "%s is never absent: remove .%s(…)", s.describe(all[0]), name)
	case name == "orValue" && len(all) == 2:
		return s.at(all[1], "this is %s, and %s is %s%s", s.kindOf(all[1]), s.describe(all[0]), s.kindOf(all[0]), s.asDouble(s.typ(all[1]), present(s.typ(all[0]))))
	case name == operators.Conditional && !s.mayBeBool(all[0]):
		return s.at(all[0], "the condition before ? must be a bool; %s is %s", s.describe(all[0]), s.kindOf(all[0]))
	case name == operators.Conditional:
		return s.at(all[1], "both values of ?: must be of one type; these are %s and %s%s", s.kindOf(all[1]), s.kindOf(all[2]), s.asDouble(s.typ(all[1]), s.typ(all[2])))
	case isOperator && len(all) == 2:
		return s.at(e, "%s does not go between %s and %s%s", symbol, s.kindOf(all[0]), s.kindOf(all[1]), s.converted(name, all))
	case isOperator && len(all) == 1:
		return s.at(e, "%s does not go before %s", symbol, s.kindOf(all[0]))
	}
	return s.at(e, "%s does not accept (%s)", call.FunctionName(), s.kinds(all))
}

// literalName returns the value of an index that is a string literal.
func literalName(e ast.Expr) string {
	name, _ := text(e)
	return name
}

// mayBeBool reports whether a node may have a bool.
func (s *source) mayBeBool(e ast.Expr) bool {
	t := s.typ(e)
	return t == nil || t.Kind() == types.BoolKind || t.Kind() == types.DynKind
}

// kinds lists types in a message.
func (s *source) kinds(all []ast.Expr) string {
	kinds := make([]string, 0, len(all))
	for _, e := range all {
		kinds = append(kinds, s.kindOf(e))
	}
	return strings.Join(kinds, ", ")
}

// converted returns a hint to convert one of two values.
func (s *source) converted(operator string, all []ast.Expr) string {
	left, right := s.typ(all[0]), s.typ(all[1])
	switch {
	case numbers(left, right):
		return s.asDouble(left, right)
	case operator == operators.Add && (left.Kind() == types.StringKind || right.Kind() == types.StringKind):
		return "; write string(…) around the other value"
	case operator == operators.Equals || operator == operators.NotEquals:
		return "; strings need quotes, numbers do not"
	}
	return ""
}

// asDouble returns a hint to convert an int to a double, if one type is int and the other double.
func (*source) asDouble(t, u *cel.Type) string {
	if !numbers(t, u) {
		return ""
	}
	return "; write double(…) around the int, or 2.0 for 2"
}

// numbers reports whether two types are different types of numbers.
func numbers(t, u *cel.Type) bool { return isNumber(t) && isNumber(u) && t.Kind() != u.Kind() }

func isNumber(t *cel.Type) bool {
	return t != nil && (t.Kind() == types.IntKind || t.Kind() == types.UintKind || t.Kind() == types.DoubleKind)
}

// ownFunctions returns the functions that compiling inserts into expressions.
func ownFunctions() []cel.EnvOption {
	v := cel.TypeParamType("V")
	return []cel.EnvOption{
		cel.Function(keyFunction, cel.Overload("key_string", []*cel.Type{cel.StringType}, cel.StringType,
			cel.UnaryBinding(func(key ref.Val) ref.Val { return key }))),
		cel.Function(rangeFunction, cel.Overload(rangeOverload, []*cel.Type{v}, v, cel.UnaryBinding(ordered))),
		cel.Function(elementFunction, cel.Overload(elementOverload, []*cel.Type{v}, v,
			cel.UnaryBinding(func(element ref.Val) ref.Val { return element }))),
	}
}

// ordered returns a map that iterates in the order of its keys, and any other value unchanged.
func ordered(v ref.Val) ref.Val {
	m, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	var keys []ref.Val
	for it := m.Iterator(); it.HasNext() == types.True; {
		keys = append(keys, it.Next())
	}
	slices.SortFunc(keys, func(a, b ref.Val) int { return cmp.Compare(fmt.Sprint(a.Value()), fmt.Sprint(b.Value())) })
	return &orderedMap{Mapper: m, keys: types.NewRefValList(types.DefaultTypeAdapter, keys)}
}

type orderedMap struct {
	traits.Mapper
	keys traits.Lister
}

// Iterator implements [traits.Iterable].
func (m *orderedMap) Iterator() traits.Iterator { return m.keys.Iterator() }
