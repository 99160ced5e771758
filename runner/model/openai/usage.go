package openai

import (
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxCost is more, a million dollars, than any answer costs: what an endpoint
// says beyond it must not overflow a sum.
const maxCost = 1_000_000_000_000

// The decimal places between a provider's unit and a millionth of a dollar.
const (
	placesUSD   = 6
	placesTicks = -4 // xAI's: ten thousand millions are a dollar
)

// usage is what an answer cost, in all the places where providers tell it.
type usage struct {
	Prompt     httpapi.Count `json:"prompt_tokens"`
	Completion httpapi.Count `json:"completion_tokens"`
	Total      httpapi.Count `json:"total_tokens"`

	PromptDetails struct {
		Cached     httpapi.Count `json:"cached_tokens"`
		CacheWrite httpapi.Count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning httpapi.Count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	Cached        httpapi.Count `json:"cached_tokens"`               // Moonshot
	NumCached     httpapi.Count `json:"num_cached_tokens"`           // Mistral
	CacheHit      httpapi.Count `json:"prompt_cache_hit_tokens"`     // DeepSeek
	CacheCreation httpapi.Count `json:"cache_creation_input_tokens"` // Vercel

	Cost  cost  `json:"cost"` // OpenRouter, Vercel, Perplexity: US dollars
	Ticks ticks `json:"cost_in_usd_ticks"`
}

// convert is the usage in our meanings.
func (u *usage) convert() step.Usage {
	v := step.Usage{
		InputTokens:     int64(u.Prompt),
		OutputTokens:    int64(u.Completion),
		ReasoningTokens: int64(u.CompletionDetails.Reasoning),
		CacheReadTokens: int64(max(u.PromptDetails.Cached, u.Cached, u.NumCached, u.CacheHit)),
	}
	v.CacheReadTokens = min(v.CacheReadTokens, v.InputTokens)
	v.CacheWriteTokens = min(int64(max(u.PromptDetails.CacheWrite, u.CacheCreation)), v.InputTokens-v.CacheReadTokens)
	switch {
	case u.Total > u.Prompt+u.Completion: // xAI and Gemini count thinking only in the total
		v.OutputTokens = int64(u.Total - u.Prompt)
	case v.ReasoningTokens > v.OutputTokens: // Vercel nowhere but in the details
		v.OutputTokens += v.ReasoningTokens
	}
	price := u.Cost
	if !price.known {
		price = cost(u.Ticks)
	}
	v.CostMicroUSD, v.Priced = min(price.microUSD, maxCost), price.known
	return v
}

// cost is a price in US dollars: a number, a number as text, or Perplexity's
// object with a total.
type cost struct {
	microUSD int64
	known    bool
}

// UnmarshalJSON accepts any value; what is no price is not known.
func (c *cost) UnmarshalJSON(data []byte) error {
	if data[0] == '{' {
		var parts struct {
			Total json.Number `json:"total_cost"`
		}
		_ = json.Unmarshal(data, &parts) // what is no total is no price
		data = []byte(parts.Total)
	}
	c.microUSD, c.known = httpapi.Decimal(strings.Trim(string(data), `"`), placesUSD)
	return nil
}

// ticks is a price as xAI tells it.
type ticks cost

// UnmarshalJSON accepts any value; what is no number is not known.
func (t *ticks) UnmarshalJSON(data []byte) error {
	t.microUSD, t.known = httpapi.Decimal(string(data), placesTicks)
	return nil
}
