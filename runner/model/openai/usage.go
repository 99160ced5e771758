package openai

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxCount is more tokens than any answer has: what an endpoint says beyond it
// must not overflow a sum.
const maxCount = 1_000_000_000

// maxCost, a million dollars, does the same for money.
const maxCost = 1_000_000_000_000

// The decimal places between a provider's unit and a millionth of a dollar.
const (
	placesUSD   = 6
	placesTicks = -4 // xAI's: ten thousand millions are a dollar
)

// usage is what an answer cost, in all the places where providers tell it.
type usage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Total      count `json:"total_tokens"`

	PromptDetails struct {
		Cached     count `json:"cached_tokens"`
		CacheWrite count `json:"cache_write_tokens"`
	} `json:"prompt_tokens_details"`
	CompletionDetails struct {
		Reasoning count `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`

	Cached        count `json:"cached_tokens"`               // Moonshot
	NumCached     count `json:"num_cached_tokens"`           // Mistral
	CacheHit      count `json:"prompt_cache_hit_tokens"`     // DeepSeek
	CacheCreation count `json:"cache_creation_input_tokens"` // Vercel

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

// A count is a number of tokens: never negative, never absurd.
type count int64

// UnmarshalJSON accepts any value; what is no number is 0.
func (c *count) UnmarshalJSON(data []byte) error {
	if n, ok := decimal(string(data), 0); ok {
		*c = count(min(n, maxCount))
	}
	return nil
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
	c.microUSD, c.known = decimal(strings.Trim(string(data), `"`), placesUSD)
	return nil
}

// ticks is a price as xAI tells it.
type ticks cost

// UnmarshalJSON accepts any value; what is no number is not known.
func (t *ticks) UnmarshalJSON(data []byte) error {
	t.microUSD, t.known = decimal(string(data), placesTicks)
	return nil
}

// decimal is s × 10^shift, rounded half up, for a number that is not negative.
// No float is involved: cost is added up exactly.
func decimal(s string, shift int) (int64, bool) {
	mantissa, exponent, hasExponent := strings.Cut(strings.ToLower(s), "e")
	if hasExponent {
		e, err := strconv.Atoi(exponent)
		if err != nil || e < -100 || e > 100 {
			return 0, false
		}
		shift += e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	shift -= len(fraction)
	if spare := len(digits) - 18; spare > 0 { // beyond what int64 holds, and beyond any meaning
		digits, shift = digits[:18], shift+spare
	}
	if digits == "" {
		return 0, strings.Contains(mantissa, "0")
	}
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil {
		return 0, false
	}
	return scale(int64(n), shift)
}

// scale is n × 10^shift, rounded half up.
func scale(n int64, shift int) (int64, bool) {
	for ; shift > 0; shift-- {
		if n > math.MaxInt64/10 {
			return 0, false
		}
		n *= 10
	}
	for ; shift < -1 && n > 0; shift++ {
		n /= 10
	}
	if shift < 0 {
		n = (n + 5) / 10
	}
	return n, true
}
