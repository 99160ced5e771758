package task

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// CountsOf returns the counts of a meter for Progress.
func CountsOf(m step.Meter) Counts {
	return Counts{Steps: m.Steps, ModelCalls: m.ModelCalls, ToolCalls: m.ToolCalls, ToolErrors: m.ToolErrors, Errors: m.Errors, Repairs: m.Repairs, OutageCalls: m.OutageCalls}
}

// UsageOf returns the usage of a meter for Progress. An unknown cost is absent, never 0. Each number is cut to the
// bounds of the schema, because a provider may report any numbers.
func UsageOf(m step.Meter) Usage {
	u := Usage{
		InputTokens:      bounded(m.Usage.InputTokens),
		CacheReadTokens:  bounded(m.Usage.CacheReadTokens),
		CacheWriteTokens: bounded(m.Usage.CacheWriteTokens),
		OutputTokens:     bounded(m.Usage.OutputTokens),
		ReasoningTokens:  bounded(m.Usage.ReasoningTokens),
		TotalTokens:      bounded(m.Usage.Total()),
		Duration:         Duration(m.DurationSeconds),
		DurationSeconds:  m.DurationSeconds,
	}
	if m.Usage.Priced {
		cost := bounded(m.Usage.CostMicroUSD)
		u.Cost, u.CostMicroUSD = Money(cost), &cost
	}
	if m.ChildTokens > 0 || m.ChildCostMicroUSD > 0 {
		return u.WithChildRuns(m)
	}
	return u
}

// maxUsage bounds tokens and cost in the status, as the schema of Run does: no limit can be
// higher. Sums over all child Runs of a Run do not overflow.
const maxUsage = 999_999_999_999

func bounded(n int64) int64 { return min(max(n, 0), maxUsage) }

// WithChildRuns returns the usage with ChildTokens and ChildCostMicroUSD set from m, also if they are 0.
func (u Usage) WithChildRuns(m step.Meter) Usage {
	tokens, cost := bounded(m.ChildTokens), bounded(m.ChildCostMicroUSD)
	u.ChildTokens, u.ChildCostMicroUSD = &tokens, &cost
	return u
}

// Charged returns the usage of a child Run that is charged to its parent: its tokens, and its cost in millionths of a
// US dollar, none of them negative. Without a cost the result is not priced, which makes the cost of the parent
// unknown.
func (u Usage) Charged() step.Usage {
	c := step.Usage{
		InputTokens:      bounded(u.InputTokens),
		CacheReadTokens:  min(bounded(u.CacheReadTokens), bounded(u.InputTokens)),
		CacheWriteTokens: bounded(u.CacheWriteTokens),
		OutputTokens:     bounded(u.OutputTokens),
		ReasoningTokens:  bounded(u.ReasoningTokens),
	}
	if u.CostMicroUSD != nil {
		c.CostMicroUSD, c.Priced = bounded(*u.CostMicroUSD), true
	}
	return c
}

// Duration formats seconds for users, as in "2m50s"; 0 is empty.
func Duration(seconds int64) string {
	if seconds <= 0 {
		return ""
	}
	return (time.Duration(min(seconds, maxDuration)) * time.Second).String()
}

// maxDuration is the most seconds that a time.Duration holds.
const maxDuration = math.MaxInt64 / int64(time.Second)

// Money writes millionths of a US dollar the way the API reads them: "0.42USD",
// with two decimals at least and six at most.
func Money(microUSD int64) string {
	s := fmt.Sprintf("%d.%06d", microUSD/1_000_000, microUSD%1_000_000)
	cents := len(s) - 4
	return s[:cents] + strings.TrimRight(s[cents:], "0") + "USD"
}
