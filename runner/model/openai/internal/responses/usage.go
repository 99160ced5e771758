package responses

import (
	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// usage is the usage of an answer.
type usage struct {
	Input        httpapi.Count `json:"input_tokens"`
	Output       httpapi.Count `json:"output_tokens"`
	Total        httpapi.Count `json:"total_tokens"`
	InputDetails struct {
		Cached     httpapi.Count `json:"cached_tokens"`
		CacheWrite httpapi.Count `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails struct {
		Reasoning httpapi.Count `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`

	Cost  httpapi.Cost  `json:"cost"` // gateways: US dollars
	Ticks httpapi.Ticks `json:"cost_in_usd_ticks"`
}

// convert returns the usage of a step.
func (u *usage) convert() step.Usage {
	return httpapi.Report{
		Input: u.Input, Output: u.Output, Total: u.Total,
		Reasoning: u.OutputDetails.Reasoning,
		CacheRead: u.InputDetails.Cached, CacheWrite: u.InputDetails.CacheWrite,
		Cost: u.Cost, Ticks: u.Ticks,
	}.Usage()
}

// totalUsage returns the usage of the answer, reported or estimated. The usage of an answer that broke off is not
// reported, and some servers report zeros.
func (a *answer) totalUsage() step.Usage {
	var u step.Usage
	if a.usage != nil {
		u = *a.usage
	}
	if u.InputTokens > 0 || u.OutputTokens > 0 {
		return u
	}
	return step.Usage{
		InputTokens: model.EstimateInput(a.exchange.req), OutputTokens: model.EstimateTokens(a.output), Estimated: true,
	}
}
