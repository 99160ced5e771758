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

// counted returns a number of steps, calls or seconds within the bounds of the schema.
func counted(n int64) int64 { return min(max(n, 0), v1alpha1.MaxCount) }

// A counter is a number of a progress that is summed.
type counter struct {
	n     *int64
	bound func(int64) int64
}

// counters returns the numbers of a progress that are summed. The cost is not among them because it
// may be unknown.
func counters(p *v1alpha1.RunProgress) []counter {
	c, u := &p.Counts, &p.Usage
	return []counter{
		{&c.Steps, counted},
		{&c.ModelCalls, counted},
		{&c.ToolCalls, counted},
		{&c.ToolErrors, counted},
		{&c.Errors, counted},
		{&c.Repairs, counted},
		{&c.OutageCalls, counted},
		{&u.DurationSeconds, counted},
		{&u.InputTokens, Charged},
		{&u.CacheReadTokens, Charged},
		{&u.CacheWriteTokens, Charged},
		{&u.OutputTokens, Charged},
		{&u.ReasoningTokens, Charged},
		{&u.TotalTokens, Charged},
	}
}

// AddUsage adds the usage of child Runs to a progress. The cost is known if it is known of each that
// used tokens.
func AddUsage(all []*v1alpha1.Run, out *v1alpha1.RunProgress) {
	cost, priced := int64(0), true
	to := counters(out)
	for _, c := range all {
		p := c.Status.Progress
		if p == nil {
			continue
		}
		if p.Effects != "" {
			out.Effects = p.Effects
		}
		for i, more := range counters(p) {
			*to[i].n = more.bound(*to[i].n + more.bound(*more.n))
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
	least := counters(&was)
	for i, is := range counters(p) {
		*is.n = max(*is.n, is.bound(*least[i].n))
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
