package anthropic

import (
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxIterations bounds what is read of how an answer came about.
const maxIterations = 1024

// usage is what an answer cost so far, as the wire tells it: what was read from
// a cache and written to one is not part of the input.
type usage struct {
	Input      httpapi.Count `json:"input_tokens"`
	CacheRead  httpapi.Count `json:"cache_read_input_tokens"`
	CacheWrite httpapi.Count `json:"cache_creation_input_tokens"`
	Output     httpapi.Count `json:"output_tokens"`
	Details    struct {
		Thinking httpapi.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	// Iterations are all that the answer took, and their sum what it cost, where
	// the provider did more than answer: compacted the session, or asked another
	// model.
	Iterations []usage      `json:"iterations"`
	Cost       httpapi.Cost `json:"cost"` // gateways: US dollars
}

// raise takes a later report: each count is cumulative, and one that a server
// leaves out or sends as 0 stays.
func (u *usage) raise(later *usage) {
	u.Input, u.Output = max(u.Input, later.Input), max(u.Output, later.Output)
	u.CacheRead, u.CacheWrite = max(u.CacheRead, later.CacheRead), max(u.CacheWrite, later.CacheWrite)
	u.Details.Thinking = max(u.Details.Thinking, later.Details.Thinking)
	if len(later.Iterations) > 0 {
		u.Iterations = later.Iterations
	}
	if later.Cost.Known {
		u.Cost = later.Cost
	}
}

// convert is the usage in our meanings.
func (u *usage) convert() step.Usage {
	v := step.Usage{ReasoningTokens: int64(u.Details.Thinking)}
	parts := u.Iterations
	if len(parts) == 0 || len(parts) > maxIterations {
		parts = []usage{*u}
	}
	for _, p := range parts {
		v.InputTokens += int64(p.Input + p.CacheRead + p.CacheWrite)
		v.CacheReadTokens += int64(p.CacheRead)
		v.CacheWriteTokens += int64(p.CacheWrite)
		v.OutputTokens += int64(p.Output)
	}
	v.ReasoningTokens = min(v.ReasoningTokens, v.OutputTokens)
	v.CostMicroUSD, v.Priced = u.Cost.MicroUSD, u.Cost.Known
	return v
}
