package step

import "encoding/json"

// Params are the inference settings of a request; the zero value leaves each to the provider.
type Params struct {
	MaxOutputTokens int64     `json:"maxOutputTokens,omitempty"`
	Temperature     *float64  `json:"temperature,omitempty"`
	TopP            *float64  `json:"topP,omitempty"`
	Reasoning       Reasoning `json:"reasoning,omitempty"`
	// Extra is a JSON object merged into the request body, over everything else.
	Extra json.RawMessage `json:"extra,omitempty"`
}

// Reasoning is how hard a model should think before it answers.
type Reasoning string

// The levels of reasoning; empty leaves it to the provider.
const (
	ReasoningOff    Reasoning = "Off"
	ReasoningLow    Reasoning = "Low"
	ReasoningMedium Reasoning = "Medium"
	ReasoningHigh   Reasoning = "High"
)
