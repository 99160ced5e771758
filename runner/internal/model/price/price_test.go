package price_test

import (
	"context"
	"errors"
	"iter"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/price"
	"github.com/deckhand-dev/deckhand/runner/internal/model/retry"
	"github.com/deckhand-dev/deckhand/runner/model"
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
		"input and output":                           {step.Usage{InputTokens: 1000, OutputTokens: 100}, sonnet, 3000 + 1500},
		"cached input is not paid twice":             {step.Usage{InputTokens: 1000, CacheReadTokens: 800, CacheWriteTokens: 100}, sonnet, 300 + 240 + 375},
		"reasoning is output already":                {step.Usage{OutputTokens: 100, ReasoningTokens: 90}, sonnet, 1500},
		"half a millionth is a whole":                {step.Usage{InputTokens: 1}, task.Prices{Input: 500_000}, 1},
		"less is none":                               {step.Usage{InputTokens: 1}, task.Prices{Input: 499_999}, 0},
		"parts are added up before they are cut":     {step.Usage{InputTokens: 1, OutputTokens: 1}, task.Prices{Input: 300_000, Output: 300_000}, 1},
		"a free model costs nothing":                 {step.Usage{InputTokens: 1000}, task.Prices{}, 0},
		"more cached than there is costs no less":    {step.Usage{InputTokens: 10, CacheReadTokens: 20}, sonnet, 6},
		"a free answer that a provider says is free": {step.Usage{InputTokens: 1000, Priced: true}, sonnet, 0},
		"half up is up, not to even":                 {step.Usage{InputTokens: 3}, task.Prices{Input: 500_000}, 2},
		"what a provider said stands":                {step.Usage{InputTokens: 1000, CostMicroUSD: 7, Priced: true}, sonnet, 7},
		"a product beyond 64 bits is exact":          {step.Usage{InputTokens: 1_000_000_007}, task.Prices{Input: 1_000_000_000_000}, 1_000_000_007_000_000},
		"a cost beyond 64 bits is the largest":       {step.Usage{InputTokens: math.MaxInt64, OutputTokens: math.MaxInt64}, task.Prices{Input: math.MaxInt64, Output: math.MaxInt64}, math.MaxInt64},
		"negative counts do not pay for the others":  {step.Usage{InputTokens: -5, OutputTokens: 100}, sonnet, 1500},
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

// long costs 3 and 15 dollars, 6 and 22.50 above 200,000 tokens of input, and 10 and 30 above a million.
var long = task.Prices{
	Input: 3_000_000, Output: 15_000_000, CacheRead: 300_000, CacheWrite: 3_000_000,
	Tiers: []task.PriceTier{
		{Above: 200_000, Input: 6_000_000, Output: 22_500_000, CacheRead: 600_000, CacheWrite: 6_000_000},
		{Above: 1_000_000, Input: 10_000_000, Output: 30_000_000, CacheRead: 1_000_000, CacheWrite: 10_000_000},
	},
}

func TestTierOfARequest(t *testing.T) {
	cases := map[string]struct {
		usage step.Usage
		want  int64
	}{
		"at the bound the lower prices hold":         {step.Usage{InputTokens: 200_000, OutputTokens: 1000}, 600_000 + 15_000},
		"above it the tier holds for all tokens":     {step.Usage{InputTokens: 200_001, OutputTokens: 1000}, 1_200_006 + 22_500},
		"the last tier that is reached holds":        {step.Usage{InputTokens: 1_000_001}, 10_000_010},
		"input from the cache counts for the tier":   {step.Usage{InputTokens: 300_000, CacheReadTokens: 300_000}, 180_000},
		"output does not count for the tier":         {step.Usage{InputTokens: 1, OutputTokens: 900_000}, 13_500_003},
		"an estimate costs the most that it could":   {step.Usage{InputTokens: 150_000, Estimated: true}, 900_000},
		"a low estimate stays below the tier":        {step.Usage{InputTokens: 100_000, Estimated: true}, 300_000},
		"a provider's own cost stands in every tier": {step.Usage{InputTokens: 300_000, CostMicroUSD: 7, Priced: true}, 7},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := price.Of(tc.usage, long).CostMicroUSD; got != tc.want {
				t.Errorf("costs %d, want %d", got, tc.want)
			}
		})
	}
}

// An answer may take several requests: each has the prices of its own input and time.
func TestEachRequestOfAnAnswerHasItsOwnPrices(t *testing.T) {
	request := func(input, output int64, isEstimated, isReported bool) model.RequestUsage {
		return model.RequestUsage{Usage: step.Usage{InputTokens: input, OutputTokens: output, Estimated: isEstimated}, InputReported: isReported}
	}
	short, high := request(150_000, 1000, false, true), request(250_000, 0, false, true)
	answer := func(isContinued bool, requests ...model.RequestUsage) model.Delta {
		d := model.Delta{Continued: isContinued, Requests: requests, Usage: new(step.Usage)}
		for _, r := range requests {
			*d.Usage = d.Usage.Plus(r.Usage)
		}
		return d
	}
	later := long
	later.Changes = []task.PriceChange{{From: "2026-11-28", Input: 1_000_000, Output: 1_000_000}}
	paid := short
	paid.CostMicroUSD, paid.Priced = 7, true
	cases := map[string]struct {
		prices  task.Prices
		answers fixed
		want    int64
	}{
		"two short requests are no long one":          {long, fixed{answer(false, short, short)}, 2 * (450_000 + 15_000)},
		"one of them is long":                         {long, fixed{answer(false, short, high)}, 450_000 + 15_000 + 1_500_000},
		"one whose cost the provider reported":        {long, fixed{answer(false, paid, short)}, 7 + 450_000 + 15_000},
		"a cut one whose input was reported":          {long, fixed{answer(false, request(150_000, 1000, true, true))}, 450_000 + 15_000},
		"a cut one whose input is estimated":          {long, fixed{answer(false, request(150_000, 0, true, false))}, 900_000},
		"the last is cut, and the first was reported": {long, fixed{answer(false, short, request(10, 1000, true, false))}, 450_000 + 15_000 + 30 + 15_000},
		"prices change between two requests":          {later, fixed{answer(true, short), answer(false, short, short)}, 450_000 + 15_000 + 150_000 + 1000},
		"it pauses twice":                             {later, fixed{answer(true, short), answer(true, short, short), answer(false, short, short, high)}, 450_000 + 15_000 + 150_000 + 1000 + 250_000},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := noon().AddDate(0, 0, -1)
			clock := func() time.Time { now = now.AddDate(0, 0, 1); return now }
			r, err := model.Collect(price.New(tc.answers, &tc.prices, clock).Stream(t.Context(), nil), nil)
			if !errors.Is(err, errEnd) || r.Usage.CostMicroUSD != tc.want || !r.Usage.Priced {
				t.Errorf("error %v, costs %d (priced: %t), want %d", err, r.Usage.CostMicroUSD, r.Usage.Priced, tc.want)
			}
		})
	}
}

// An estimate is not made cheaper by a tier that it might reach.
func TestAnEstimateNearACheaperTier(t *testing.T) {
	falling := task.Prices{Input: 2_000_000, Tiers: []task.PriceTier{{Above: 100, Input: 1_000_000}}}
	if got := price.Of(step.Usage{InputTokens: 80, Estimated: true}, falling).CostMicroUSD; got != 160 {
		t.Errorf("costs %d, want 160", got)
	}
}

func TestPricesOfATime(t *testing.T) {
	p := task.Prices{Input: 1, Changes: []task.PriceChange{
		{From: "2027-01-01", Input: 2},
		{Start: "01:00", End: "04:00", Input: 3},
		{From: "2027-02-01", Start: "22:30", End: "00:30", Input: 4},
	}}
	for at, want := range map[string]int64{
		"2026-12-31T23:59:59Z":      1,
		"2027-01-01T00:00:00Z":      2,
		"2027-01-01T00:30:00+02:00": 1, // UTC counts
		"2026-12-31T01:00:00Z":      3,
		"2027-01-01T03:59:59Z":      3,
		"2027-01-01T04:00:00Z":      2,
		"2027-01-31T23:00:00Z":      2,
		"2027-02-01T23:00:00Z":      4,
		"2027-02-02T00:29:00Z":      4,
		"2027-02-02T00:30:00Z":      2,
	} {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			t.Fatal(err)
		}
		if got := price.At(p, now).Input; got != want {
			t.Errorf("at %s: %d, want %d", at, got, want)
		}
	}
}

// noon is a time.
func noon() time.Time { return time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC) }

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
			_, err := model.Collect(price.New(m, tc.prices, noon).Stream(t.Context(), nil), func(d model.Delta) { got = append(got, d) })
			if diff := cmp.Diff(tc.want, got); diff != "" || !errors.Is(err, errEnd) {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
			if spent.Priced {
				t.Error("the usage of the model itself was changed")
			}
		})
	}
}

// A cost is the sum of what its parts would cost to the fraction: rounding the
// whole once is off from rounding each of n parts by at most n halves.
func TestTheWholeCostsWhatItsPartsCost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		p := task.Prices{
			Input: random.Int64N(100_000_000), Output: random.Int64N(100_000_000),
			CacheRead: random.Int64N(100_000_000), CacheWrite: random.Int64N(100_000_000),
		}
		plain, read, write, out := random.Int64N(1e6), random.Int64N(1e6), random.Int64N(1e6), random.Int64N(1e6)
		exact := new(big.Int)
		for _, product := range [][2]int64{{plain, p.Input}, {read, p.CacheRead}, {write, p.CacheWrite}, {out, p.Output}} {
			exact.Add(exact, new(big.Int).Mul(big.NewInt(product[0]), big.NewInt(product[1])))
		}
		exact.Div(exact.Add(exact, big.NewInt(500_000)), big.NewInt(1_000_000))
		whole := step.Usage{InputTokens: plain + read + write, CacheReadTokens: read, CacheWriteTokens: write, OutputTokens: out, ReasoningTokens: out / 2}
		got := price.Of(whole, p).CostMicroUSD
		if got != exact.Int64() {
			t.Fatalf("%+v at %+v costs %d, want %s", whole, p, got, exact)
		}
		parts := []step.Usage{{InputTokens: plain}, {InputTokens: read, CacheReadTokens: read}, {InputTokens: write, CacheWriteTokens: write}, {OutputTokens: out}}
		var sum step.Usage
		for _, part := range parts {
			sum = sum.Plus(price.Of(part, p))
		}
		if off := sum.CostMicroUSD - got; off < -2 || off > 2 || !sum.Priced || sum.Total() != whole.Total() {
			t.Fatalf("the parts of %+v at %+v cost %+v, the whole %d", whole, p, sum, got)
		}
	}
}

// One call that was tried three times costs three calls, each rounded by itself.
func TestEachTryIsPricedByItself(t *testing.T) {
	half := task.Prices{Input: 500_000}
	one := step.Usage{InputTokens: 1}
	m := &tries{left: []error{errCut, errCut, nil}, usage: one}
	r, err := model.Collect(retry.New(price.New(m, &half, noon), retry.Options{Sleep: func(context.Context, time.Duration) error { return nil }}).Stream(t.Context(), nil), nil)
	if err != nil || r.Usage.CostMicroUSD != 3 || r.Usage.InputTokens != 3 || !r.Usage.Priced {
		t.Errorf("error %v, usage %+v; want 3 times 1", err, r.Usage)
	}
}

var errCut = &model.IncompleteError{}

// tries is a Model whose answers cost something and break off.
type tries struct {
	left  []error
	usage step.Usage
}

func (m *tries) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	err := m.left[0]
	m.left = m.left[1:]
	return func(yield func(model.Delta, error) bool) {
		used := m.usage
		if !yield(model.Delta{Text: "H", Usage: &used}, nil) {
			return
		}
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Finish: step.FinishStop}, nil)
	}
}
