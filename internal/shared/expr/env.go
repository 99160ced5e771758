package expr

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/decls"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"

	"github.com/deckhand-dev/deckhand/internal/shared/celmacros"
)

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

// base is what all environments of a Language share.
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
	// Libraries declare them. Nil: there are none.
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
