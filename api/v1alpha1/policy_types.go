package v1alpha1

import "slices"

// PolicyRule allows, denies or asks about the tool calls that it matches.
//
// +kubebuilder:validation:XValidation:rule="!has(self.approvers) || self.answer == 'Ask'",message="approvers is only allowed with answer: Ask: write answer: Ask, or remove approvers"
type PolicyRule struct {
	// name is the name of the rule in messages and in the log.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -"
	// +required
	Name string `json:"name"`

	// when is a CEL expression over tool, args, agent, run and shell that selects calls, for
	// example tool == 'HTTPRequest' && args.method != 'GET'. If it does not compile, the Agent
	// is not Ready, reason Invalid. Default: all calls.
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="when is empty, which would mean all calls: write an expression, or remove when"
	// +optional
	When string `json:"when,omitempty"`

	// answer is what happens to a matching call. Allow: it is made. Deny: it is not made; the
	// model reads the reason and continues. Ask: it waits until a user approves or denies it
	// with a Decision, reason AwaitingApproval.
	// +kubebuilder:validation:Enum=Allow;Deny;Ask
	// +required
	Answer PolicyAnswer `json:"answer"`

	// reason is shown to the model (Deny) or to the approvers (Ask).
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 512",message="must be at most 512 bytes"
	// +optional
	Reason string `json:"reason,omitempty"`

	// approvers restrict which users may decide (Ask). Default: all users who may create
	// Decisions.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`
}

// PolicyAnswer is what happens to a tool call.
type PolicyAnswer string

// The decisions about a call.
const (
	PolicyAllow PolicyAnswer = "Allow"
	PolicyDeny  PolicyAnswer = "Deny"
	PolicyAsk   PolicyAnswer = "Ask"
)

// Approval makes calls of a tool wait until a user approves them.
type Approval struct {
	// when is a CEL expression that selects calls, as in spec.policy. If it does not compile,
	// the Agent is not Ready, reason Invalid. Default: all calls.
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="when is empty, which would mean all calls: write an expression, or remove when"
	// +optional
	When string `json:"when,omitempty"`

	// approvers restrict who may decide. Default: all users who may create Decisions.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`
}

// Approvers are users who may decide: the members of groups, and users.
//
// +kubebuilder:validation:XValidation:rule="has(self.groups) || has(self.users)",message="approvers is empty: write groups: [leads] or users: [ann@example.com], or remove approvers"
// +kubebuilder:validation:XValidation:rule="(has(self.groups) ? size(self.groups) : 0) + (has(self.users) ? size(self.users) : 0) <= 8",message="groups and users must have at most 8 names together: make a group of the users"
type Approvers struct {
	// groups are names of user groups, as the API server authenticates them, at most 8. A
	// Decision must name one of them in spec.groups, and its author must be a member.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Groups []string `json:"groups,omitempty"`

	// users are names of users, as the API server authenticates them, at most 8 together with
	// groups. A Decision whose spec.by is one of them needs no group. kubectl auth whoami prints
	// the name of a user.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Users []string `json:"users,omitempty"`
}

// Names returns the names of the groups and then of the users. A nil Approvers has none.
func (a *Approvers) Names() []string {
	if a == nil {
		return nil
	}
	return slices.Concat(a.Groups, a.Users)
}

// Include reports whether a user, on behalf of groups, may decide. A nil Approvers, and one
// without names, includes all users.
func (a *Approvers) Include(user string, groups []string) bool {
	return len(a.Names()) == 0 || slices.Contains(a.Users, user) ||
		slices.ContainsFunc(groups, func(g string) bool { return slices.Contains(a.Groups, g) })
}
