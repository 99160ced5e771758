package task

import "slices"

// Rule decides about the calls that it matches.
type Rule struct {
	Name string `json:"name"`
	// When is a CEL expression; empty: every call.
	When string `json:"when,omitempty"`
	// Answer is Allow, Deny or Ask.
	Answer string `json:"answer"`
	Reason string `json:"reason,omitempty"`
	Approvers
}

// Approval has a person decide on calls of a tool.
type Approval struct {
	When string `json:"when,omitempty"`
	Approvers
}

// Approvers are the users who may decide: the members of the groups, and the users. Without
// names they are all users who may decide at all.
type Approvers struct {
	Groups []string `json:"groups,omitempty"`
	Users  []string `json:"users,omitempty"`
}

// Restricted returns the approvers; nil if they are all users who may decide.
func (a Approvers) Restricted() *Approvers {
	if a.AreAll() {
		return nil
	}
	return &a
}

// AreAll reports whether all users who may decide are approvers.
func (a Approvers) AreAll() bool { return len(a.Groups)+len(a.Users) == 0 }

// Equal reports whether two approvers have the same names in the same order.
func (a Approvers) Equal(b Approvers) bool {
	return slices.Equal(a.Groups, b.Groups) && slices.Equal(a.Users, b.Users)
}

// UsersSize is how much of MaxAsked a list of users takes beside their names.
const UsersSize = 16

// Size is how much of MaxAsked the approvers take.
func (a Approvers) Size() int {
	size := 0
	for _, name := range slices.Concat(a.Groups, a.Users) {
		size += len(name)
	}
	if len(a.Users) > 0 {
		size += UsersSize
	}
	return size
}
