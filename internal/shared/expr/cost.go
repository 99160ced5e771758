package expr

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// programOptions limit an evaluation to MaxCost. CEL counts the cost of a function after the call; guard checks
// functions whose single call may be expensive before it.
func (b *base) programOptions() []cel.ProgramOption {
	return []cel.ProgramOption{
		cel.CostLimit(MaxCost),
		cel.CostTracking(b.costs),
		cel.CostTrackerOptions(b.trackers...),
		cel.CustomDecoratorV2(b.guard),
	}
}

// trackers replace the costs of CEL's libraries by prices.
func trackers(f *decls.FunctionDecl) []interpreter.CostTrackerOption {
	price, ok := prices[f.Name()]
	if !ok {
		return nil
	}
	var all []interpreter.CostTrackerOption
	for _, o := range f.OverloadDecls() {
		all = append(all, interpreter.OverloadCostTracker(o.ID(), func(args []ref.Val, _ ref.Val) *uint64 {
			cost := price(args)
			return &cost
		}))
	}
	return all
}

// costs returns the costs of calls.
type costs struct {
	more interpreter.ActualCostEstimator // of the functions that a Language has in addition; nil: none
}

// CallCost implements [interpreter.ActualCostEstimator].
func (c costs) CallCost(function, overload string, args []ref.Val, result ref.Val) *uint64 {
	price, ok := prices[function]
	switch {
	case ok:
		cost := price(args)
		return &cost
	case c.more != nil:
		return c.more.CallCost(function, overload, args, result)
	}
	return nil
}

const tooCostly = "it does more than an expression may; make it simpler, or read less"

// guard checks the price of a call before it is evaluated.
func (b *base) guard(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok {
		return i, nil
	}
	price, ok := prices[call.Function()]
	if !ok {
		return i, nil
	}
	do := b.implementation(call)
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
		if price(args) > MaxCost {
			return types.NewErr("%s", tooCostly) // counting its cost ends the evaluation
		}
		return do(args...)
	}), nil
}

// implementation returns the Go function that a call executes.
func (b *base) implementation(call interpreter.InterpretableCall) functions.FunctionOp {
	args := call.Args()
	switch call.Function() {
	case operators.Equals:
		return func(args ...ref.Val) ref.Val { return types.Equal(args[0], args[1]) }
	case operators.NotEquals:
		return func(args ...ref.Val) ref.Val {
			equal, ok := types.Equal(args[0], args[1]).(types.Bool)
			return types.Bool(!ok || !bool(equal))
		}
	case "matches":
		if literal, ok := args[1].(interpreter.InterpretableConst); ok && isKept(fmt.Sprint(literal.Value())) {
			return matches(fmt.Sprint(literal.Value()))
		}
	}
	bound, ok := b.bindings[call.OverloadID()]
	if !ok {
		bound = b.bindings[call.Function()]
	}
	return func(args ...ref.Val) ref.Val {
		switch {
		case bound == nil || bound.OperandTrait != 0 && !args[0].Type().HasTrait(bound.OperandTrait):
			return types.MaybeNoSuchOverloadErr(args[0])
		case len(args) == 1 && bound.Unary != nil:
			return bound.Unary(args[0])
		case len(args) == 2 && bound.Binary != nil:
			return bound.Binary(args[0], args[1])
		case bound.Function != nil:
			return bound.Function(args...)
		}
		return types.MaybeNoSuchOverloadErr(args[0])
	}
}

// prices are the costs of functions that the estimator of Kubernetes and the trackers of CEL's libraries charge too
// little for. They are checked before a call; the costs of all other functions are counted after it. With the costs of
// Kubernetes alone, 30 of 126 hostile expressions run for more than 6 s or allocate more than 900 MiB:
//
//   - Values that share their parts. [1].map(a, [a, a]), thirty times, has 2³⁰ numbers after thirty steps: comparing, sorting, flattening or formatting it does not end.
//   - Results that are larger than the arguments: of a text of 320 KiB, a.replace('a', a)
//     and a.split(”).join(a) have 100 GiB.
//   - quantity('1e2147483647').isGreaterThan(…), which does not end.
//   - Patterns: (x{100}){10}, 1,500 times, takes 340 MiB to compile for each call.
//   - Functions with several overloads of a value whose type is not known: CEL charges
//     1 for x + x, x.reverse() and x.size(), whatever the length.
var prices = map[string]func([]ref.Val) uint64{
	operators.Equals:        comparison,
	operators.NotEquals:     comparison,
	operators.In:            func(v []ref.Val) uint64 { return membership(v[1]) },
	operators.Add:           addition,
	"matches":               matching,
	"find":                  matching,
	"findAll":               findingAll,
	"isURL":                 pass,
	"quantity":              quantity,
	"isQuantity":            quantity,
	"getQuery":              query,
	"includes":              weights,
	"isSorted":              weights,
	"max":                   weights,
	"min":                   weights,
	"sum":                   weights,
	"sort":                  sorting,
	"@sortByAssociatedKeys": sorting,
	"distinct":              func(v []ref.Val) uint64 { return 1 + size(v[0])*weights(v) },
	"flatten":               func(v []ref.Val) uint64 { return 1 + weights(v[:1]) },
	"indexOf":               search,
	"lastIndexOf":           search,
	"sets.contains":         product,
	"sets.equivalent":       product,
	"sets.intersects":       product,
	"replace":               replacement,
	"join":                  joining,
	"format":                func(v []ref.Val) uint64 { return 1 + length(v[0])/10 + weights(v[1:]) },
	"reverse":               pass,
	"lowerAscii":            pass,
	"upperAscii":            pass,
	"substring":             pass,
	"trim":                  pass,
	"split":                 func(v []ref.Val) uint64 { return 2 * pass(v[:1]) },
	"size":                  func(v []ref.Val) uint64 { return 1 + length(v[0])/10 },
	rangeFunction:           iteration,
}

// length returns the length of a string in bytes.
func length(v ref.Val) uint64 {
	s, _ := v.(types.String)
	return uint64(len(s))
}

// size returns the number of elements of a list or map.
func size(v ref.Val) uint64 {
	if s, ok := v.(traits.Sizer); ok && length(v) == 0 {
		n, _ := s.Size().(types.Int)
		return uint64(max(n, 0))
	}
	return 0
}

// pass returns the cost of reading a string or a list once.
func pass(v []ref.Val) uint64 { return 1 + length(v[0])/10 + size(v[0]) }

func comparison(v []ref.Val) uint64 {
	if scalar(v[0]) || scalar(v[1]) {
		return 1
	}
	return weights(v)
}

func scalar(v ref.Val) bool {
	_, ok := v.(traits.Sizer)
	_, optional := v.(*types.Optional)
	return !ok && !optional
}

func membership(of ref.Val) uint64 {
	if _, ok := of.(traits.Mapper); ok {
		return 1
	}
	return weights([]ref.Val{of})
}

func addition(v []ref.Val) uint64 {
	if _, growing := v[0].(traits.MutableLister); growing { // a comprehension's own list, in place
		return 1
	}
	return 1 + (length(v[0])+length(v[1])+size(v[0])+size(v[1]))/10
}

func replacement(v []ref.Val) uint64 {
	if len(v) < 3 {
		return 1
	}
	grows := uint64(0)
	if length(v[2]) > length(v[1]) {
		grows = parts(v[0], v[1]) * (length(v[2]) - length(v[1]))
	}
	return 1 + (2*length(v[0])+grows)/10
}

// parts returns the number of parts of a split string.
func parts(v, separator ref.Val) uint64 {
	s, _ := v.(types.String)
	sep, _ := separator.(types.String)
	return uint64(strings.Count(string(s), string(sep))) + 1 //nolint:gosec // a count is not negative
}

// iteration returns the square of the length, in addition to the cost of the steps: CEL's cost tracker scans a stack
// that grows with each step. Without it a loop over 50,000 items within MaxCost takes 9 s.
func iteration(v []ref.Val) uint64 { return 1 + size(v[0]) + size(v[0])*size(v[0])/400 }

func joining(v []ref.Val) uint64 {
	between := uint64(0)
	if len(v) > 1 {
		between = length(v[1])
	}
	return 1 + weights(v[:1]) + size(v[0])*between/10
}

// quantity refuses large exponents: arithmetic with 1e2147483647 takes as many digits.
func quantity(v []ref.Val) uint64 {
	text, _ := v[0].(types.String)
	if at := strings.LastIndexAny(string(text), "eE"); at >= 0 {
		if exponent, err := strconv.Atoi(string(text[at+1:])); errors.Is(err, strconv.ErrRange) || exponent > maxExponent || exponent < -maxExponent {
			return MaxCost + 1
		}
	}
	return 1 + length(text)*length(text)
}

const maxExponent = 100

func query(v []ref.Val) uint64 {
	u, ok := v[0].Value().(*url.URL)
	if !ok {
		return 1
	}
	return 1 + uint64(len(u.RawQuery))
}

func search(v []ref.Val) uint64 {
	if length(v[0]) == 0 {
		return weights(v) // a list
	}
	return 1 + length(v[0])/10 + length(v[0])*length(v[1])/100
}

func sorting(v []ref.Val) uint64 { return 1 + 20*size(v[0]) + weights(v) }

func product(v []ref.Val) uint64 {
	return 1 + size(v[0])*weights(v[1:]) + size(v[1])*weights(v[:1])
}

// weights returns the cost of reading values as a tree, with parts that they share counted
// each time: 1 for each value and for ten bytes of text. Counting stops at MaxCost.
func weights(all []ref.Val) uint64 {
	w := weigher{left: MaxCost}
	for _, v := range all {
		w.add(v)
	}
	return uint64(MaxCost - w.left) //nolint:gosec // left is at most MaxCost
}

// A weigher counts down from MaxCost.
type weigher struct{ left int64 }

func (w *weigher) add(v ref.Val) {
	w.left--
	if w.left < 0 {
		return
	}
	switch v := v.(type) {
	case types.String:
		w.left -= int64(len(v) / 10)
	case *types.Optional:
		if v.HasValue() {
			w.add(v.GetValue())
		}
	case traits.Lister:
		for i, n := types.Int(0), v.Size(); i.Compare(n) == types.IntNegOne && w.left >= 0; i++ {
			w.add(v.Get(i))
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True && w.left >= 0; {
			key := it.Next()
			w.add(key)
			w.add(v.Get(key))
		}
	}
}

// compilePattern compiles a pattern that is a literal.
func compilePattern(expression string) (*regexp.Regexp, error) {
	compiled, err := pattern.Compile(expression)
	if size, large := errors.AsType[*pattern.SizeError](err); large {
		return nil, fmt.Errorf("the pattern is too large: %w", size)
	}
	if err != nil {
		return nil, fmt.Errorf("%w; the syntax is RE2, without look-around and back-references", err)
	}
	return compiled, nil
}

// isKept reports whether a compiled pattern is kept in memory together with its expression. A pattern
// whose program is much larger than its text is compiled for each call instead, at the cost of the
// call: a Workflow may have hundreds of expressions.
func isKept(expression string) bool {
	n, err := states(expression)
	return err == nil && n <= uint64(4*len(expression)+64)
}

// matches returns the function matches for a pattern that is a literal.
func matches(literal string) functions.FunctionOp {
	compiled, err := compilePattern(literal)
	return func(args ...ref.Val) ref.Val {
		s, ok := args[0].(types.String)
		switch {
		case err != nil:
			return types.WrapErr(err)
		case !ok:
			return types.MaybeNoSuchOverloadErr(args[0])
		}
		return types.Bool(compiled.MatchString(string(s)))
	}
}

// matching returns the cost of matching a pattern: each character may be in each state of the pattern.
func matching(v []ref.Val) uint64 {
	n, err := states(fmt.Sprint(v[1].Value()))
	switch {
	case err != nil:
		return 1 + length(v[1])/10 // compiling it fails
	case n > pattern.MaxInstructions:
		return MaxCost + 1
	}
	return 1 + n + (10+length(v[0]))*(4+n)/40
}

// findingAll returns the cost of findAll: of matching, and of the result.
func findingAll(v []ref.Val) uint64 { return matching(v) + length(v[0]) }

// states estimates the number of states of a compiled pattern.
func states(expression string) (uint64, error) {
	n, err := pattern.Instructions(expression)
	return uint64(n), err //nolint:gosec // a count is not negative
}
