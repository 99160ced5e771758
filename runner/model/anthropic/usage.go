package anthropic

import (
	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxIterations bounds the iterations that are read of an answer.
const maxIterations = 1024

// usage is the usage of an answer as the API reports it: tokens read from the cache or
// written to it are not part of the input.
type usage struct {
	Input      httpapi.Count `json:"input_tokens"`
	CacheRead  httpapi.Count `json:"cache_read_input_tokens"`
	CacheWrite httpapi.Count `json:"cache_creation_input_tokens"`
	Output     httpapi.Count `json:"output_tokens"`
	Details    struct {
		Thinking httpapi.Count `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
	// Iterations are the steps of an answer if the provider compacted the session or
	// called another model; the usage is their sum.
	Iterations []usage      `json:"iterations"`
	Cost       httpapi.Cost `json:"cost"` // gateways: US dollars
}

// raise merges a later report. Each count is cumulative; a missing count or 0 changes nothing.
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

// requests returns the usage of each step of an answer. The provider's own cost covers all steps.
func (u *usage) requests() []model.RequestUsage {
	if n := len(u.Iterations); n == 0 || n > maxIterations || u.Cost.Known {
		v := u.convert()
		return []model.RequestUsage{{Usage: v, InputReported: v.InputTokens > 0}}
	}
	var out []model.RequestUsage
	for _, it := range u.Iterations {
		it.Iterations = nil
		out = append(out, model.RequestUsage{Usage: it.convert(), InputReported: true})
	}
	return out
}

// convert returns the usage of a step.
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
