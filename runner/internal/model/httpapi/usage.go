package httpapi

import "github.com/deckhand-dev/deckhand/runner/step"

// A Report is the usage of an answer as the APIs of OpenAI, and others after them, report it.
type Report struct {
	Input, Output, Total  Count
	Reasoning             Count // of Output
	CacheRead, CacheWrite Count // of Input
	Cost                  Cost
	Ticks                 Ticks
}

// Usage returns the usage of a step.
func (r Report) Usage() step.Usage {
	u := step.Usage{
		InputTokens: int64(r.Input), OutputTokens: int64(r.Output), ReasoningTokens: int64(r.Reasoning),
		CacheReadTokens: int64(min(r.CacheRead, r.Input)),
	}
	u.CacheWriteTokens = min(int64(r.CacheWrite), u.InputTokens-u.CacheReadTokens)
	switch {
	case r.Total > r.Input+r.Output: // xAI and Gemini count reasoning only in the total
		u.OutputTokens = int64(r.Total - r.Input)
	case u.ReasoningTokens > u.OutputTokens: // Vercel nowhere but in the details
		u.OutputTokens += u.ReasoningTokens
	}
	price := r.Cost
	if !price.Known {
		price = Cost(r.Ticks)
	}
	u.CostMicroUSD, u.Priced = price.MicroUSD, price.Known
	return u
}
