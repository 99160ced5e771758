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
	v := step.Usage{
		InputTokens:     int64(u.Input),
		OutputTokens:    int64(u.Output),
		ReasoningTokens: int64(u.OutputDetails.Reasoning),
		CacheReadTokens: int64(min(u.InputDetails.Cached, u.Input)),
	}
	v.CacheWriteTokens = min(int64(u.InputDetails.CacheWrite), v.InputTokens-v.CacheReadTokens)
	switch {
	case u.Total > u.Input+u.Output: // some servers count reasoning only in the total
		v.OutputTokens = int64(u.Total - u.Input)
	case v.ReasoningTokens > v.OutputTokens:
		v.OutputTokens += v.ReasoningTokens
	}
	price := u.Cost
	if !price.Known {
		price = httpapi.Cost(u.Ticks)
	}
	v.CostMicroUSD, v.Priced = price.MicroUSD, price.Known
	return v
}

// totalUsage returns what the answer cost: what was reported, or an estimate. The usage of an
// answer that broke off is not reported, and some servers report zeros.
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
