package v1alpha1

// PolicyRule decides about the tool calls that it matches.
type PolicyRule struct {
	// name of the rule, for messages and the log.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -"
	// +required
	Name string `json:"name"`

	// when is a CEL expression over tool, args, agent, run and shell that selects calls, for
	// example tool == 'HTTPRequest' && args.method != 'GET'. Default: every call.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`

	// answer is Allow, Deny (the model reads the reason and continues) or Ask (a user
	// decides, reason AwaitingApproval).
	// +kubebuilder:validation:Enum=Allow;Deny;Ask
	// +required
	Answer PolicyAnswer `json:"answer"`

	// reason is shown to the model with a Deny, and to approvers with an Ask.
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 512",message="must be at most 512 bytes"
	// +optional
	Reason string `json:"reason,omitempty"`

	// approvers restrict who may decide. Default: all users who may create Decisions.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`
}

// PolicyAnswer is the decision about a call.
type PolicyAnswer string

// The decisions about a call.
const (
	PolicyAllow PolicyAnswer = "Allow"
	PolicyDeny  PolicyAnswer = "Deny"
	PolicyAsk   PolicyAnswer = "Ask"
)

// Approval has a person decide on calls of a tool.
type Approval struct {
	// when is a CEL expression that says which calls, as in policy. Default: all.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	When string `json:"when,omitempty"`

	// approvers restrict who may decide. Default: all users who may create Decisions.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`
}

// Approvers are the users who may decide.
type Approvers struct {
	// groups are names of groups as the API server knows them. A Decision must name
	// one of them in spec.groups, and its author must be a member.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +required
	Groups []string `json:"groups"`
}

// Names returns the names of the groups. A nil Approvers has none.
func (a *Approvers) Names() []string {
	if a == nil {
		return nil
	}
	return a.Groups
}
