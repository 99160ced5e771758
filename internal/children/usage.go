package children

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// UsedBy returns the usage of a child. If its cost is unknown, that is what was reserved
// for it.
func UsedBy(c *v1alpha1.Run, reservation Amounts) Amounts {
	p := c.Status.Progress
	if p == nil {
		return Amounts{}
	}
	out := UsageOf(p)
	if p.Usage.CostMicroUSD == nil && out[Tokens] > 0 {
		out[Cost] = reservation[Cost]
	}
	return out
}

// UsageOf returns the usage that a progress reports. A custom runner may report any
// numbers, so each is between 0 and a bound that sums do not overflow.
func UsageOf(p *v1alpha1.RunProgress) Amounts {
	out := Amounts{p.Counts.Steps, p.Usage.TotalTokens, 0, p.Usage.DurationSeconds}
	if p.Usage.CostMicroUSD != nil {
		out[Cost] = *p.Usage.CostMicroUSD
	}
	for d := range Resources {
		out[d] = Charged(out[d])
	}
	return out
}

// ChildUsageOf returns the tokens and cost of child Runs that a progress includes; false: its
// runner has asked for none, or is too old to count them apart.
func ChildUsageOf(p *v1alpha1.RunProgress) (charged Amounts, known bool) {
	if p.Usage.ChildTokens == nil {
		return Amounts{}, false
	}
	charged[Tokens] = Charged(*p.Usage.ChildTokens)
	if p.Usage.ChildCostMicroUSD != nil {
		charged[Cost] = Charged(*p.Usage.ChildCostMicroUSD)
	}
	return charged, true
}

// AddTo adds amounts to the usage that a Run reports.
func (a Amounts) AddTo(p *v1alpha1.RunProgress) {
	p.Counts.Steps = counted(p.Counts.Steps + a[Steps])
	p.Usage.TotalTokens = Charged(p.Usage.TotalTokens + a[Tokens])
	p.Usage.DurationSeconds = counted(p.Usage.DurationSeconds + a[Duration])
	if p.Usage.CostMicroUSD != nil {
		cost := Charged(*p.Usage.CostMicroUSD + a[Cost])
		p.Usage.CostMicroUSD = &cost
	}
}

// Charged returns how a reported number counts: at least 0 and at most v1alpha1.MaxUsage, far beyond
// what any Run uses, and so low that a sum over all children of a Run does not overflow.
func Charged(n int64) int64 { return min(max(n, 0), v1alpha1.MaxUsage) }

// counted returns a sum of steps, calls or seconds within the bounds of the schema.
func counted(n int64) int64 { return min(max(n, 0), v1alpha1.MaxCount) }

// counters returns the numbers of a progress that are summed: those of steps, calls and seconds, and
// those of tokens. The cost is not among them because it may be unknown.
func counters(p *v1alpha1.RunProgress) (counts, tokens []*int64) {
	counts = []*int64{
		&p.Counts.Steps, &p.Counts.ModelCalls, &p.Counts.ToolCalls, &p.Counts.ToolErrors, &p.Counts.Errors, &p.Counts.Repairs, &p.Counts.OutageCalls,
		&p.Usage.DurationSeconds,
	}
	tokens = []*int64{
		&p.Usage.InputTokens, &p.Usage.CacheReadTokens, &p.Usage.CacheWriteTokens,
		&p.Usage.OutputTokens, &p.Usage.ReasoningTokens, &p.Usage.TotalTokens,
	}
	return counts, tokens
}

// AddUsage adds the usage of child Runs to a progress. The cost is known if it is known of each that
// used tokens.
func AddUsage(all []*v1alpha1.Run, out *v1alpha1.RunProgress) {
	cost, priced := int64(0), true
	counts, tokens := counters(out)
	for _, c := range all {
		p := c.Status.Progress
		if p == nil {
			continue
		}
		if p.Effects != "" {
			out.Effects = p.Effects
		}
		moreCounts, moreTokens := counters(p)
		for i, n := range moreCounts {
			*counts[i] = counted(*counts[i] + counted(*n))
		}
		for i, n := range moreTokens {
			*tokens[i] = Charged(*tokens[i] + Charged(*n))
		}
		switch {
		case p.Usage.CostMicroUSD != nil:
			cost = Charged(cost + Charged(*p.Usage.CostMicroUSD))
		case p.Usage.InputTokens > 0 || p.Usage.OutputTokens > 0:
			priced = false
		}
	}
	if priced {
		out.Usage.CostMicroUSD = &cost
	}
}

// KeepUsage keeps the usage of a progress from being less than it was, and writes duration and cost
// as texts.
func KeepUsage(p *v1alpha1.RunProgress, was v1alpha1.RunProgress) {
	counts, tokens := counters(p)
	leastCounts, leastTokens := counters(&was)
	for i, n := range counts {
		*n = max(*n, counted(*leastCounts[i]))
	}
	for i, n := range tokens {
		*n = max(*n, Charged(*leastTokens[i]))
	}
	u := &p.Usage
	u.Duration = task.Duration(u.DurationSeconds)
	if u.CostMicroUSD == nil {
		return
	}
	if before := was.Usage.CostMicroUSD; before != nil {
		cost := max(*u.CostMicroUSD, Charged(*before))
		u.CostMicroUSD = &cost
	}
	u.Cost = task.Money(*u.CostMicroUSD)
}
