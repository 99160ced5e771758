package price_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/price"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// sonnet costs 3, 15, 0.30 and 3.75 dollars for a million tokens.
var sonnet = task.Prices{Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000, CacheWrite: 3_750_000}

func TestOf(t *testing.T) {
	cases := map[string]struct {
		usage  step.Usage
		prices task.Prices
		want   int64
	}{
		"input and output":                          {step.Usage{InputTokens: 1000, OutputTokens: 100}, sonnet, 3000 + 1500},
		"cached input is not paid twice":            {step.Usage{InputTokens: 1000, CacheReadTokens: 800, CacheWriteTokens: 100}, sonnet, 300 + 240 + 375},
		"reasoning is output already":               {step.Usage{OutputTokens: 100, ReasoningTokens: 90}, sonnet, 1500},
		"half a millionth is a whole":               {step.Usage{InputTokens: 1}, task.Prices{Input: 500_000}, 1},
		"less is none":                              {step.Usage{InputTokens: 1}, task.Prices{Input: 499_999}, 0},
		"parts are added up before they are cut":    {step.Usage{InputTokens: 1, OutputTokens: 1}, task.Prices{Input: 300_000, Output: 300_000}, 1},
		"a free model costs nothing":                {step.Usage{InputTokens: 1000}, task.Prices{}, 0},
		"more cached than there is costs no less":   {step.Usage{InputTokens: 10, CacheReadTokens: 20}, sonnet, 6},
		"what a provider said stands":               {step.Usage{InputTokens: 1000, CostMicroUSD: 7, Priced: true}, sonnet, 7},
		"a product beyond 64 bits is exact":         {step.Usage{InputTokens: 1_000_000_007}, task.Prices{Input: 1_000_000_000_000}, 1_000_000_007_000_000},
		"a cost beyond 64 bits is the largest":      {step.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}, task.Prices{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64},
		"negative counts do not pay for the others": {step.Usage{InputTokens: -5, OutputTokens: 100}, sonnet, 1500},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := price.Of(tc.usage, tc.prices)
			if got.CostMicroUSD != tc.want || !got.Priced {
				t.Errorf("costs %d (priced: %t), want %d", got.CostMicroUSD, got.Priced, tc.want)
			}
		})
	}
}

// fixed is a Model that says the same each time.
type fixed []model.Delta

func (f fixed) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, d := range f {
			if !yield(d, nil) {
				return
			}
		}
		yield(model.Delta{}, errEnd)
	}
}

var errEnd = errors.New("the end")

func TestEveryUsageOfAStreamIsPriced(t *testing.T) {
	spent := step.Usage{InputTokens: 1000}
	m := fixed{{Text: "H"}, {Reset: true, Usage: &spent}, {Text: "Hi", Usage: &spent}}
	paid := spent
	paid.CostMicroUSD, paid.Priced = 3000, true
	cases := map[string]struct {
		prices *task.Prices
		want   []model.Delta
	}{
		"with prices":                  {&sonnet, []model.Delta{{Text: "H"}, {Reset: true, Usage: &paid}, {Text: "Hi", Usage: &paid}}},
		"without them it is not known": {nil, m},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []model.Delta
			_, err := model.Collect(price.New(m, tc.prices).Stream(t.Context(), nil), func(d model.Delta) { got = append(got, d) })
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, errEnd) {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
			if spent.Priced {
				t.Error("the usage of the model itself was changed")
			}
		})
	}
}
