package runflags

import (
	"github.com/spf13/pflag"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

// Amounts are the flags with amounts of limits, which run and grant have.
type Amounts struct {
	flags        *pflag.FlagSet
	steps        int32
	tokens, cost string
}

// Bind adds the flags with their descriptions.
func (a *Amounts) Bind(flags *pflag.FlagSet, steps, tokens, cost string) {
	a.flags = flags
	flags.Int32Var(&a.steps, "steps", 0, steps)
	flags.StringVar(&a.tokens, "tokens", "", tokens)
	flags.StringVar(&a.cost, "cost", "", cost)
}

// AreGiven reports whether the command line has one of the flags, even with the default value.
func (a *Amounts) AreGiven() bool {
	return a.hasFlag("steps") || a.hasFlag("tokens") || a.hasFlag("cost")
}

// hasFlag reports whether the command line has a flag.
func (a *Amounts) hasFlag(name string) bool { return a.flags != nil && a.flags.Changed(name) }

// Read returns the amounts of the flags that the command line has. A zero amount would change nothing,
// so it is refused.
func (a *Amounts) Read() (*v1alpha1.Grant, error) {
	grant := &v1alpha1.Grant{}
	if a.hasFlag("steps") {
		if a.steps < 1 {
			return nil, exit.Usagef("--steps %d: write a number above 0", a.steps)
		}
		grant.Steps = &a.steps
	}
	if a.hasFlag("tokens") {
		if _, err := v1alpha1.Tokens(a.tokens).Count(); err != nil {
			return nil, exit.Usagef("--tokens %s: write a number above 0, for example 500k or 2M", quotedIfEmpty(a.tokens))
		}
		grant.Tokens = (*v1alpha1.Tokens)(&a.tokens)
	}
	if a.hasFlag("cost") {
		n, err := v1alpha1.Money(a.cost).MicroUSD()
		if err != nil {
			return nil, exit.Usagef("--cost %s: write an amount with its unit, for example 1.50USD", quotedIfEmpty(a.cost))
		}
		if n == 0 {
			return nil, exit.Usagef("--cost %s: write an amount above 0, for example 1.50USD", quotedIfEmpty(a.cost))
		}
		grant.Cost = (*v1alpha1.Money)(&a.cost)
	}
	return grant, nil
}

// quotedIfEmpty returns the value of a flag for a message: in quotes if it is empty.
func quotedIfEmpty(value string) string {
	if value == "" {
		return `""`
	}
	return value
}
