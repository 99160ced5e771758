package task

// Rule decides about the calls that it matches.
type Rule struct {
	Name string `json:"name"`
	// When is a CEL expression; empty: every call.
	When string `json:"when,omitempty"`
	// Answer is Allow, Deny or Ask.
	Answer string   `json:"answer"`
	Reason string   `json:"reason,omitempty"`
	Groups []string `json:"groups,omitempty"`
}

// Approval has a person decide on calls of a tool.
type Approval struct {
	When   string   `json:"when,omitempty"`
	Groups []string `json:"groups,omitempty"`
}
