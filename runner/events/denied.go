package events

import "github.com/deckhand-dev/deckhand/runner/step"

// CallDenied says that a call was not made, because a rule, a user or a hook denied it. Its
// result, which follows, says the same to the model.
type CallDenied struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// By is Policy, Approver, Timeout or Hook, as in status.progress.refused.
	By string `json:"by"`
	// Rule is the rule of a policy that denied the call, or the hook.
	Rule string `json:"rule,omitempty"`
	// Step is the number of the turn that wrote the call.
	Step int64 `json:"step"`
}

// EventType names the event.
func (CallDenied) EventType() step.EventType { return step.EventCallDenied }
