package step

// A Meter is the usage of a Run in all its attempts. It never decreases.
type Meter struct {
	// Steps are the model's turns, which limits.steps bounds.
	Steps      int64 `json:"steps,omitempty"`
	ModelCalls int64 `json:"modelCalls,omitempty"`
	// OutageCalls counts the ModelCalls that failed because the model was unavailable, and after which the runner
	// waited. limits.modelCalls does not count them.
	OutageCalls int64 `json:"outageCalls,omitempty"`
	ToolCalls   int64 `json:"toolCalls,omitempty"`
	// ToolErrors counts the ToolCalls whose result reports a failure, including denied calls.
	ToolErrors int64 `json:"toolErrors,omitempty"`
	// Errors are failed model calls and tool results that report a failure.
	Errors int64 `json:"errors,omitempty"`
	// Repairs are the changes to requests that a provider refused, or would refuse.
	Repairs int64 `json:"repairs,omitempty"`
	Usage   Usage `json:"usage,omitzero"`
	// ChildTokens and ChildCostMicroUSD are the parts of Usage that child Runs used.
	ChildTokens       int64 `json:"childTokens,omitempty"`
	ChildCostMicroUSD int64 `json:"childCostMicroUSD,omitempty"`
	// DurationSeconds is how long a runner was alive.
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
}

// Max returns, field by field, the higher of two meters of one Run. Either may be outdated, and the usage must never
// decrease.
func (m Meter) Max(o Meter) Meter {
	m.Steps = max(m.Steps, o.Steps)
	m.ModelCalls = max(m.ModelCalls, o.ModelCalls)
	m.OutageCalls = max(m.OutageCalls, o.OutageCalls)
	m.ToolCalls = max(m.ToolCalls, o.ToolCalls)
	m.ToolErrors = max(m.ToolErrors, o.ToolErrors)
	m.Errors = max(m.Errors, o.Errors)
	m.Repairs = max(m.Repairs, o.Repairs)
	m.DurationSeconds = max(m.DurationSeconds, o.DurationSeconds)
	m.ChildTokens = max(m.ChildTokens, o.ChildTokens)
	m.ChildCostMicroUSD = max(m.ChildCostMicroUSD, o.ChildCostMicroUSD)
	if o.Usage.InputTokens+o.Usage.OutputTokens > m.Usage.InputTokens+m.Usage.OutputTokens {
		m.Usage = o.Usage
	}
	return m
}

// PlusChildRun adds the usage of a child Run.
func (m Meter) PlusChildRun(used Usage) Meter {
	m.Usage = m.Usage.Plus(used)
	m.ChildTokens += used.Total()
	m.ChildCostMicroUSD += used.CostMicroUSD
	return m
}

// Usage is the consumption of one or more model calls, in tokens. Providers count differently; adapters convert to
// these meanings.
type Usage struct {
	// InputTokens is all input, including tokens read from and written to a prompt cache.
	InputTokens      int64 `json:"inputTokens,omitempty"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	// OutputTokens is all output, reasoning included.
	OutputTokens    int64 `json:"outputTokens,omitempty"`
	ReasoningTokens int64 `json:"reasoningTokens,omitempty"`
	// CostMicroUSD is the price in millionths of a US dollar; it is valid only if Priced is true.
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
	// Priced is true if the price of all of this usage is known. Otherwise the cost is shown as unknown, never as 0.
	Priced bool `json:"priced,omitempty"`
	// ContextTokens is how much of the model's window the last of several requests took with
	// its answer, while the other fields are their sum. 0 means that there was only one
	// request, or that it is unknown.
	ContextTokens int64 `json:"contextTokens,omitempty"`
	// Estimated is true if some of the counts are our estimate, because a stream broke before the provider reported
	// them.
	Estimated bool `json:"estimated,omitempty"`
}

// Total returns the tokens that limits.tokens counts: input that was not read from a cache, and output.
func (u Usage) Total() int64 {
	return u.InputTokens - u.CacheReadTokens + u.OutputTokens
}

// Context returns how much of the model's window a request and its answer took; 0: not known.
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
