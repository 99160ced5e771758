package events

import "github.com/deckhand-dev/deckhand/runner/step"

// LimitNear says, once per limit, that most of it is used.
type LimitNear struct {
	Limit string `json:"limit"` // steps, modelCalls, toolCalls, tokens, cost or duration
	Used  int64  `json:"used"`
	Max   int64  `json:"max"`
}

// Warning says what may be wrong although the work continues.
type Warning struct {
	Text string `json:"text"`
	// Step is the number of the turn under way.
	Step int64 `json:"step"`
}

// EventType names the event.
func (LimitNear) EventType() step.EventType { return step.EventLimitNear }

// EventType names the event.
func (Warning) EventType() step.EventType { return step.EventWarning }
