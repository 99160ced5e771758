package step

// Usage is what one or more model calls consumed, in tokens. Providers count
// differently; adapters convert to these meanings.
type Usage struct {
	// InputTokens is all input, what was read from and written to a prompt cache
	// included.
	InputTokens      int64 `json:"inputTokens,omitempty"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	// OutputTokens is all output, reasoning included.
	OutputTokens    int64 `json:"outputTokens,omitempty"`
	ReasoningTokens int64 `json:"reasoningTokens,omitempty"`
	// CostMicroUSD is the price in millionths of a US dollar; it means something
	// only where Priced is true.
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
	// Priced is true if the price of this usage is completely known: an unpriced cost is
	// shown as empty, never as 0.
	Priced bool `json:"priced,omitempty"`
	// ContextTokens is how much of the model's window the last of several requests took with
	// its answer, while the other fields are their sum. 0 means that there was only one
	// request, or that it is unknown.
	ContextTokens int64 `json:"contextTokens,omitempty"`
	// Estimated is true when some of the counts are our estimate, because a
	// stream was cut before the provider told.
	Estimated bool `json:"estimated,omitempty"`
}

// Total is what limits.tokens counts: input that was not read from a cache,
// and output.
func (u Usage) Total() int64 {
	return u.InputTokens - u.CacheReadTokens + u.OutputTokens
}

// Context is how much of the model's window a request and its answer took, as
// far as this tells; 0: it does not.
func (u Usage) Context() int64 {
	switch {
	case u.ContextTokens > 0:
		return u.ContextTokens
	case u.InputTokens > 0:
		return u.InputTokens + u.OutputTokens
	}
	return 0
}

// Plus adds two usages. The sum is priced only when both are; adding to the
// zero Usage keeps the other's price.
func (u Usage) Plus(v Usage) Usage {
	priced, context := u.Priced && v.Priced, int64(0)
	switch {
	case u == Usage{}:
		priced, context = v.Priced, v.ContextTokens
	case v == Usage{}:
		priced, context = u.Priced, u.ContextTokens
	}
	return Usage{
		InputTokens:      u.InputTokens + v.InputTokens,
		CacheReadTokens:  u.CacheReadTokens + v.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + v.CacheWriteTokens,
		OutputTokens:     u.OutputTokens + v.OutputTokens,
		ReasoningTokens:  u.ReasoningTokens + v.ReasoningTokens,
		CostMicroUSD:     u.CostMicroUSD + v.CostMicroUSD,
		Priced:           priced,
		ContextTokens:    context,
		Estimated:        u.Estimated || v.Estimated,
	}
}
