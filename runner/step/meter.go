package step

// A Meter is what a Run has used so far, in all its attempts. It never falls.
type Meter struct {
	// Steps are the model's turns: what limits.steps counts.
	Steps      int64 `json:"steps,omitempty"`
	ModelCalls int64 `json:"modelCalls,omitempty"`
	// OutageCalls are those ModelCalls that found the model unavailable and were followed by a
	// wait. limits.modelCalls does not count them.
	OutageCalls int64 `json:"outageCalls,omitempty"`
	ToolCalls   int64 `json:"toolCalls,omitempty"`
	// ToolErrors are those ToolCalls whose result reports a failure, denied calls included.
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

// Max is, field by field, the higher of two meters of one Run: what two
// channels tell of it, each perhaps late, never lowers what is known.
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

// PlusChildRun adds what a child Run used.
func (m Meter) PlusChildRun(used Usage) Meter {
	m.Usage = m.Usage.Plus(used)
	m.ChildTokens += used.Total()
	m.ChildCostMicroUSD += used.CostMicroUSD
	return m
}
