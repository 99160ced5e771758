// Package price computes the cost of answers from the prices of a Model. It is exact: prices are whole millionths of a
// dollar for a million tokens, and no floats are used.
package price

import (
	"context"
	"iter"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// perMillion is how many tokens a price is for.
const perMillion = 1_000_000

// New returns m with each Usage priced at the time of its request. A cost that the provider reported is kept. With nil
// prices all other usage stays unpriced.
func New(m model.Model, prices *task.Prices, now func() time.Time) model.Model {
	if prices == nil {
		return m
	}
	return &pricer{model: m, prices: *prices, now: now}
}

type pricer struct {
	model  model.Model
	prices task.Prices
	now    func() time.Time
}

// Stream adds prices to the stream of the model.
func (p *pricer) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		b := bill{prices: At(p.prices, p.now())}
		for d, err := range p.model.Stream(ctx, req) {
			if d.Usage != nil {
				d.Usage, d.Requests = b.usage(d), nil
			}
			if !yield(d, err) {
				return
			}
			if d.Continued {
				b.settle(At(p.prices, p.now()))
			}
		}
	}
}

// A bill prices the requests of one answer, each at the prices of its own input and time.
type bill struct {
	prices task.Prices // of the request that is under way
	// settled are the requests before it.
	settled []model.RequestUsage
	last    []model.RequestUsage
}

// usage returns the usage of a Delta with its cost.
func (b *bill) usage(d model.Delta) *step.Usage {
	sum := *d.Usage
	if b.last = requests(d); sum.Priced {
		return &sum
	}
	sum.CostMicroUSD, sum.Priced = 0, true
	for i := range b.last {
		if i < len(b.settled) {
			b.last[i] = b.settled[i]
		}
		b.last[i].Usage = ofRequest(b.last[i], b.prices)
		sum.CostMicroUSD = add(sum.CostMicroUSD, b.last[i].CostMicroUSD)
	}
	return &sum
}

// settle keeps the cost of the requests so far, before another is sent at other prices.
func (b *bill) settle(prices task.Prices) { b.settled, b.prices = b.last, prices }

// requests returns the usage of each request of an answer.
func requests(d model.Delta) []model.RequestUsage {
	if len(d.Requests) > 0 {
		return slices.Clone(d.Requests)
	}
	return []model.RequestUsage{{Usage: *d.Usage}}
}

// add returns the sum of two costs, at most the largest int64.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// At returns the prices that hold at a time: those of the last change that holds, or the prices
// themselves.
func At(prices task.Prices, now time.Time) task.Prices {
	now = now.UTC()
	day, clock := now.Format(time.DateOnly), now.Format("15:04")
	for _, c := range slices.Backward(prices.Changes) {
		if day >= c.From && isWithin(clock, c.Start, c.End) {
			return task.Prices{Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite, Tiers: c.Tiers}
		}
	}
	return prices
}

// isWithin reports whether a time of the day is in [start, end), which may cross midnight. Without
// start and end it always is.
func isWithin(clock, start, end string) bool {
	if start <= end {
		return start == end || start <= clock && clock < end
	}
	return clock >= start || clock < end
}

// estimateError is how many times larger the real input of an estimated request may be.
const estimateError = 2

// Of returns u with its cost, rounded half up to a millionth of a dollar. Input that was read from, or written to, the
// cache is charged at those prices only. A cost that u already has is kept. The price tier depends on the input of the
// whole request, so u must be the usage of one request. If the input is estimated, the highest possible cost is
// charged, so that a limit of cost is not exceeded.
func Of(u step.Usage, prices task.Prices) step.Usage {
	return ofRequest(model.RequestUsage{Usage: u}, prices)
}

func ofRequest(r model.RequestUsage, prices task.Prices) step.Usage {
	u := r.Usage
	if u.Priced {
		return u
	}
	u.CostMicroUSD, u.Priced = cost(u, base(prices)), true
	reach := u.InputTokens
	if u.Estimated && !r.InputReported {
		reach *= estimateError
	}
	for _, tier := range prices.Tiers {
		switch {
		case u.InputTokens > tier.Above:
			u.CostMicroUSD = cost(u, tier)
		case reach > tier.Above:
			u.CostMicroUSD = max(u.CostMicroUSD, cost(u, tier))
		}
	}
	return u
}

// base returns the prices of the shortest requests.
func base(p task.Prices) task.PriceTier {
	return task.PriceTier{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
}

func cost(u step.Usage, t task.PriceTier) int64 {
	plain := max(u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens, 0)
	var sum wide
	sum.add(plain, t.Input)
	sum.add(u.CacheReadTokens, t.CacheRead)
	sum.add(u.CacheWriteTokens, t.CacheWrite)
	sum.add(u.OutputTokens, t.Output)
	return sum.divide(perMillion)
}

// wide is a sum of 128 bits: a product of tokens and a price may need more
// than 64.
type wide struct{ high, low uint64 }

// add adds a × b. A negative factor counts as 0.
func (w *wide) add(a, b int64) {
	high, low := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	var carry uint64
	w.low, carry = bits.Add64(w.low, low, 0)
	w.high, _ = bits.Add64(w.high, high, carry) // four products below 2^126: no overflow
}

// divide returns the sum divided by n, rounded half up, at most the largest int64.
func (w *wide) divide(n uint64) int64 {
	low, carry := bits.Add64(w.low, n/2, 0)
	high := w.high + carry
	if high >= n {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, n)
	return int64(min(quotient, math.MaxInt64))
}
