package listprices

import (
	"errors"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var errOrder = errors.New("not above the tier before")

// ForRunner returns prices as the runner computes with them. An error begins with the path of the
// field, and says what to write.
func ForRunner(p *v1alpha1.Prices) (*task.Prices, error) {
	tier, err := forRunner("", v1alpha1.PriceTier{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite})
	if err != nil {
		return nil, err
	}
	out := &task.Prices{Input: tier.Input, Output: tier.Output, CacheRead: tier.CacheRead, CacheWrite: tier.CacheWrite}
	last := int64(0)
	for i, t := range p.Tiers {
		path := fmt.Sprintf("tiers[%d].", i)
		above, err := t.Above.Count()
		if err != nil {
			return nil, fmt.Errorf("%sabove: %w", path, err)
		}
		if above <= last {
			return nil, fmt.Errorf("%sabove is %s: %w. Write more than %d, in ascending order, or remove the tier", path, t.Above, errOrder, last)
		}
		if tier, err = forRunner(path, t); err != nil {
			return nil, err
		}
		last, tier.Above = above, above
		out.Tiers = append(out.Tiers, tier)
	}
	return out, nil
}

// forRunner converts the four prices of a tier.
func forRunner(path string, t v1alpha1.PriceTier) (task.PriceTier, error) {
	read, write := t.Input, t.Input
	if t.CacheRead != nil {
		read = *t.CacheRead
	}
	if t.CacheWrite != nil {
		write = *t.CacheWrite
	}
	var out task.PriceTier
	for _, f := range []struct {
		name string
		from v1alpha1.Money
		to   *int64
	}{{"input", t.Input, &out.Input}, {"output", t.Output, &out.Output}, {"cacheRead", read, &out.CacheRead}, {"cacheWrite", write, &out.CacheWrite}} {
		micro, err := f.from.MicroUSD()
		if err != nil {
			return out, fmt.Errorf("%s%s: %w. Write an amount per million tokens, for example 3USD", path, f.name, err)
		}
		*f.to = micro
	}
	return out, nil
}

// Dearest returns prices without tiers and changes, each the highest that a request could have. A
// custom runner that was built before there were any refuses the whole task because of them.
func Dearest(p *task.Prices) *task.Prices {
	if p == nil || len(p.Tiers)+len(p.Changes) == 0 {
		return p
	}
	tiers := slices.Clone(p.Tiers)
	for _, c := range p.Changes {
		tiers = append(tiers, task.PriceTier{Input: c.Input, Output: c.Output, CacheRead: c.CacheRead, CacheWrite: c.CacheWrite})
		tiers = append(tiers, c.Tiers...)
	}
	out := task.Prices{Input: p.Input, Output: p.Output, CacheRead: p.CacheRead, CacheWrite: p.CacheWrite}
	for _, t := range tiers {
		out.Input, out.Output = max(out.Input, t.Input), max(out.Output, t.Output)
		out.CacheRead, out.CacheWrite = max(out.CacheRead, t.CacheRead), max(out.CacheWrite, t.CacheWrite)
	}
	return &out
}
