package children

import (
	"fmt"
	"strconv"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Resource is something that limits bound.
type Resource int

// The resources. Cost is in millionths of a US dollar, Duration in seconds.
const (
	Steps Resource = iota
	Tokens
	Cost
	Duration
	Resources // how many there are
)

// Reason returns the reason of a Run that ends because its limit on a resource is used up.
func (r Resource) Reason() string {
	return [Resources]string{
		Steps:    v1alpha1.ReasonStepLimit,
		Tokens:   v1alpha1.ReasonTokenLimit,
		Cost:     v1alpha1.ReasonCostLimit,
		Duration: v1alpha1.ReasonDurationLimit,
	}[r]
}

// Field returns the field of the limit.
func (r Resource) Field() string {
	return [Resources]string{Steps: "limits.steps", Tokens: "limits.tokens", Cost: "limits.cost", Duration: "limits.duration"}[r]
}

// Format writes an amount for users.
func (r Resource) Format(n int64) string {
	switch r {
	case Cost:
		return task.Money(n)
	case Duration:
		return (time.Duration(n) * time.Second).String()
	default:
		return strconv.FormatInt(n, 10)
	}
}

// maxSteps is the largest limit on steps that a Run can express.
const maxSteps = 10_000

// maxLimits are the largest amounts that the limits of a Run can express.
var maxLimits = [Resources]int64{Steps: maxSteps, Tokens: 999_999_999_999, Cost: 999_999_999_999, Duration: 720 * 3600}

// Amounts has an amount of each resource. In limits, 0 means no limit.
type Amounts [Resources]int64

// Lowest returns the lower of two limits, resource by resource.
func Lowest(a, b Amounts) Amounts {
	for d := range Resources {
		if a[d] == 0 || b[d] != 0 && b[d] < a[d] {
			a[d] = b[d]
		}
	}
	return a
}

// Plus adds amounts.
func (a Amounts) Plus(b Amounts) Amounts {
	for r := range Resources {
		a[r] += b[r]
	}
	return a
}

// Minus subtracts amounts. The result is at least 0.
func (a Amounts) Minus(b Amounts) Amounts {
	for r := range Resources {
		a[r] = max(0, a[r]-b[r])
	}
	return a
}

// Max returns the higher amount of each resource.
func (a Amounts) Max(b Amounts) Amounts {
	for r := range Resources {
		a[r] = max(a[r], b[r])
	}
	return a
}

// LimitsOf returns the limits of a Run or a node. nil has no limits.
func LimitsOf(l *v1alpha1.Limits) Amounts {
	if l == nil {
		return Amounts{}
	}
	lowered := snapshot.Lower(task.Limits{}, *l)
	return Amounts{lowered.Steps, lowered.Tokens, lowered.CostMicroUSD, lowered.DurationSeconds}
}

// WorkflowLimits returns the limits of a Workflow. nil has no limits.
func WorkflowLimits(l *v1alpha1.WorkflowLimits) Amounts {
	if l == nil {
		return Amounts{}
	}
	return LimitsOf(&v1alpha1.Limits{Steps: l.Steps, Tokens: l.Tokens, Cost: l.Cost, Duration: l.Duration})
}

// Budget is what several children may use together. A child reserves its part when it is created; when it ends, its
// usage replaces the reservation. So all children together stay within the limits.
type Budget struct {
	Limit    Amounts
	Bounded  [Resources]bool // whether there is a limit
	Used     Amounts         // by what has ended
	Reserved Amounts         // for active children
	Active   int             // how many children are active
}

// NewBudget returns an unused budget.
func NewBudget(limit Amounts) *Budget {
	b := &Budget{Limit: limit}
	for r := range Resources {
		b.Bounded[r] = limit[r] > 0
	}
	return b
}

// Use counts usage.
func (b *Budget) Use(usage Amounts) {
	b.Used = b.Used.Plus(usage)
}

// Charge counts a child with its reservation.
func (b *Budget) Charge(c *v1alpha1.Run, reservation Amounts) {
	spent := UsedBy(c, reservation)
	if !runstatus.IsFinished(c) {
		b.Active++
	}
	for d := range Resources {
		switch {
		case runstatus.IsFinished(c):
			b.Used[d] += spent[d]
		case reservation[d] == 0: // it has no limit of its own and may use all
			b.Reserved[d] += max(b.Limit[d], 0)
		default:
			b.Reserved[d] += max(reservation[d], spent[d])
		}
	}
}

// Left returns how much can still be reserved.
func (b *Budget) Left(r Resource) int64 { return max(0, b.Limit[r]-b.Used[r]-b.Reserved[r]) }

// Exhausted returns the first resource whose limit is used up; false: there is none.
func (b *Budget) Exhausted() (Resource, bool) {
	for d := range Resources {
		if b.Bounded[d] && b.Used[d] >= b.Limit[d] {
			return d, true
		}
	}
	return Resources, false
}

// Reserve reserves the amount that a child wants or, if no other child is active, at most everything that is left. It
// returns false if nothing is left, or if less is left than the child wants while other children are active, which may
// release a part of theirs.
func (b *Budget) Reserve(want Amounts) (grant Amounts, enough bool) {
	grant = want
	for d := range Resources {
		if !b.Bounded[d] {
			continue
		}
		left := b.Left(d)
		short := want[d] == 0 || want[d] > left
		if left == 0 || short && b.Active > 0 {
			return grant, false
		}
		if short {
			grant[d] = left
		}
		grant[d] = min(grant[d], maxLimits[d])
	}
	for d := range Resources {
		b.Reserved[d] += grant[d]
	}
	b.Active++
	return grant, true
}

// LimitsFor returns the limits of a child: its own, lowered to its reservation.
func (b *Budget) LimitsFor(own *v1alpha1.Limits, grant Amounts) *v1alpha1.Limits {
	out := own.DeepCopy()
	for d := range Resources {
		if !b.Bounded[d] {
			continue
		}
		if out == nil {
			out = &v1alpha1.Limits{}
		}
		setLimit(out, d, grant[d])
	}
	return out
}

// setLimit sets the limit of one resource.
func setLimit(l *v1alpha1.Limits, d Resource, n int64) {
	switch d {
	case Steps:
		steps := int32(min(max(n, 0), maxSteps))
		l.Steps = &steps
	case Tokens:
		tokens := v1alpha1.Tokens(strconv.FormatInt(n, 10))
		l.Tokens = &tokens
	case Cost:
		cost := v1alpha1.Money(task.Money(n))
		l.Cost = &cost
	default:
		duration := v1alpha1.Duration(fmt.Sprintf("%ds", n))
		l.Duration = &duration
	}
}

// UsedBy returns the usage of a child. If its cost is unknown, it counts as the reserved cost.
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

// ChildUsageOf returns the tokens and cost of child Runs that a progress includes; false: its runner has requested
// none, or is too old to count them separately.
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

// Charged bounds a reported number: at least 0 and at most v1alpha1.MaxUsage, which no Run reaches and whose sum over
// all children of a Run does not overflow.
func Charged(n int64) int64 { return min(max(n, 0), v1alpha1.MaxUsage) }

// counted returns a number of steps, calls or seconds within the bounds of the schema.
func counted(n int64) int64 { return min(max(n, 0), v1alpha1.MaxCount) }

// A counter is a number of a progress that is summed.
type counter struct {
	n     *int64
	bound func(int64) int64
}

// counters returns the numbers of a progress that are summed. The cost is left out because it may be unknown.
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

// AddUsage adds the usage of child Runs to a progress. The cost is known if it is known for each that used tokens.
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
