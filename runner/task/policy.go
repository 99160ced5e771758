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

// Approvers are the users who may decide: the members of the groups.
type Approvers struct {
	Groups []string `json:"groups"`
}

// ApproversOf returns the members of groups; nil, which is every user who may decide
// at all, for no group.
func ApproversOf(groups []string) *Approvers {
	if len(groups) == 0 {
		return nil
	}
	return &Approvers{Groups: groups}
}

// Names returns the names of the groups. A nil Approvers has none.
func (a *Approvers) Names() []string {
	if a == nil {
		return nil
	}
	return a.Groups
}
