// Package price says what an answer cost, from the prices that a Model lists.
//
// It is exact: prices are whole millionths of a dollar for a million tokens,
// and no float is involved.
package price

import (
	"context"
	"iter"
	"math"
	"math/bits"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// perMillion is how many tokens a price is for.
const perMillion = 1_000_000

// New is m with each Usage priced. What the provider itself said of its cost
// stands; with nil prices the rest stays unpriced.
func New(m model.Model, prices *task.Prices) model.Model {
	if prices == nil {
		return m
	}
	return &pricer{model: m, prices: *prices}
}

type pricer struct {
	model  model.Model
	prices task.Prices
}

// Stream prices what the model streams.
func (p *pricer) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for d, err := range p.model.Stream(ctx, req) {
			if d.Usage != nil {
				priced := Of(*d.Usage, p.prices)
				d.Usage = &priced
			}
			if !yield(d, err) {
				return
			}
		}
	}
}

// Of is u with its cost, rounded half up to a millionth of a dollar. Input that
// was read from, or written to, the cache is paid at those prices and not again
// as input. A cost that u has already stands.
func Of(u step.Usage, prices task.Prices) step.Usage {
	if u.Priced {
		return u
	}
	plain := max(u.InputTokens-u.CacheReadTokens-u.CacheWriteTokens, 0)
	var sum wide
	sum.add(plain, prices.Input)
	sum.add(u.CacheReadTokens, prices.CacheRead)
	sum.add(u.CacheWriteTokens, prices.CacheWrite)
	sum.add(u.OutputTokens, prices.Output)
	u.CostMicroUSD, u.Priced = sum.divide(perMillion), true
	return u
}

// wide is a sum of 128 bits: a product of tokens and a price may need more
// than 64.
type wide struct{ high, low uint64 }

// add adds a × b; what is negative counts as 0.
func (w *wide) add(a, b int64) {
	high, low := bits.Mul64(uint64(max(a, 0)), uint64(max(b, 0)))
	var carry uint64
	w.low, carry = bits.Add64(w.low, low, 0)
	w.high, _ = bits.Add64(w.high, high, carry) // four products below 2^126: no overflow
}

// divide is the sum divided by n, rounded half up, at most the largest int64.
func (w *wide) divide(n uint64) int64 {
	low, carry := bits.Add64(w.low, n/2, 0)
	high := w.high + carry
	if high >= n {
		return math.MaxInt64
	}
	quotient, _ := bits.Div64(high, low, n)
	return int64(min(quotient, math.MaxInt64))
}
