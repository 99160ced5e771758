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
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/deckhand-dev/deckhand/internal/celmacros"
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

// base is what all environments share; creating it takes 2 ms.
type base struct {
	env      *cel.Env
	checker  *checker.Env
	bindings map[string]*functions.Overload
	trackers []interpreter.CostTrackerOption
	names    []string // of the functions that expressions may call
}

var common = sync.OnceValues(func() (*base, error) {
	optional, err := celmacros.Optional(tooComplicated)
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	env, err := cel.NewCustomEnv(slices.Concat(libraries(), optional, ownFunctions())...)
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	b := &base{env: env, bindings: map[string]*functions.Overload{}}
	if b.checker, err = checker.NewEnv(env.Container, env.CELTypeProvider(), checker.CrossTypeNumericComparisons(true)); err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(env.Functions())) {
		if err := b.add(name, env.Functions()[name]); err != nil {
			return nil, fmt.Errorf("setting up CEL: %w", err)
		}
	}
	return b, nil
})

// libraries returns the libraries of Kubernetes' own expressions without
// authorization, and CEL's math. They are listed here, and not taken from
// k8s.io/apiserver/pkg/cel/environment: the language of Workflows must not change with
// the version of a Go module.
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
		library.Lists(library.ListsVersion(1)),
		library.Regex(),
		library.URLs(),
		library.Quantity(),
		library.IP(),
		library.CIDR(),
		library.Format(),
		library.SemverLib(library.SemverVersion(1)),
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
func NewEnv(vars map[string]Type) (*Env, error) {
	b, err := common()
	if err != nil {
		return nil, err
	}
	e := &Env{base: b, vars: maps.Clone(vars), objects: objects{}}
	declared := make([]*decls.VariableDecl, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		if err := e.objects.add(vars[name]); err != nil {
			return nil, err
		}
		declared = append(declared, decls.NewVariable(name, vars[name].decl().CelType()))
	}
	provider, err := e.objects.provider()
	if err != nil {
		return nil, fmt.Errorf("declaring objects: %w", err)
	}
	e.checker, err = checker.NewEnv(b.env.Container, provider, checker.CrossTypeNumericComparisons(true), checker.ValidatedDeclarations(b.checker))
	if err != nil {
		return nil, fmt.Errorf("setting up CEL: %w", err)
	}
	if err := e.checker.AddIdents(declared...); err != nil {
		return nil, fmt.Errorf("declaring variables: %w", err)
	}
	return e, nil
}
