package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decision is what a user tells a Run: to make a call or not, the answer to a
// question, more of a limit that was reached, or a message. The requests that a Run
// waits for are in its status.progress.pending. A Decision is made once, in the name
// of the user who creates it, and cannot be changed. It is the record of what was
// decided for the Run, and is deleted with the Run.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dcn,categories=deckhand
// +kubebuilder:selectablefield:JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="Run",type=string,JSONPath=`.spec.run`
// +kubebuilder:printcolumn:name="Request",type=string,JSONPath=`.spec.request`
// +kubebuilder:printcolumn:name="Type",type=string,JSONPath=`.spec.type`
// +kubebuilder:printcolumn:name="By",type=string,JSONPath=`.spec.by`
// +kubebuilder:printcolumn:name="Applied",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Applied")].reason`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Applied")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="!has(self.spec.request) || self.metadata.name == self.spec.run + '.' + self.spec.request || self.metadata.name.startsWith(self.spec.run + '.' + self.spec.request + '.') && self.metadata.name.substring(size(self.spec.run + '.' + self.spec.request + '.')).matches('^[1-9][0-9]{0,2}$')",messageExpression="'metadata.name must be ' + self.spec.run + '.' + self.spec.request + ' (<run>.<request>), so that a request is decided once. If a Decision of this name was refused, name the next one ' + self.spec.run + '.' + self.spec.request + '.2'"
// +kubebuilder:validation:XValidation:rule="has(self.spec.request) || !self.metadata.name.contains('.')",message="metadata.name contains a dot, which only the name <run>.<request> of a Decision with spec.request has: use a name without dots, or metadata.generateName"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 144",message="metadata.name is longer than 144 characters, which is the most that the status of a Run lists"
type Decision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what was decided. It cannot be changed.
	// +required
	Spec DecisionSpec `json:"spec"`

	// status says whether the Run acted on the Decision.
	// +kubebuilder:default={conditions:{{type:"Applied",status:"Unknown",reason:"Waiting",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status DecisionStatus `json:"status,omitempty"`
}

// DecisionSpec is what was decided. It cannot be changed: to decide otherwise, create
// another Decision.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a Decision cannot be changed: create another Decision"
// +kubebuilder:validation:XValidation:rule="has(self.value) ? self.type in ['Answer', 'Message', 'Approve'] : !(self.type in ['Answer', 'Message'])",message="value is required for the types Answer and Message, allowed for Approve if the request has a schema, and not allowed for Deny and Grant"
// +kubebuilder:validation:XValidation:rule="has(self.grant) == (self.type == 'Grant')",message="grant is required for the type Grant and not allowed for other types: write grant: {steps: 20}"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['Approve', 'Deny']) || has(self.request)",message="request is required for the types Approve and Deny: copy the id from status.progress.pending of the Run"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || self.type == 'Approve'",message="digest is allowed for the type Approve only: remove it"
// +kubebuilder:validation:XValidation:rule="self.type != 'Approve' || has(self.digest) || !has(self.request) || self.request.startsWith('approval-') || self.request.matches('-[0-9a-f]{32}$')",message="request does not end in the digest of the call: copy the whole id from status.progress.pending of the Run, such as s3c1-5e6c29fac144bc9c69d116d9f81012ec"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.type == 'Approve'",message="scope is allowed for the type Approve only: remove it"
// +kubebuilder:validation:XValidation:rule="self.type != 'Message' || !has(self.request)",message="request is not allowed for the type Message: remove it, or use the type Answer"
type DecisionSpec struct {
	// run is the name of the Run, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Run: lower-case letters, digits and -"
	// +required
	Run string `json:"run"`

	// request is the id of the request that is decided, from status.progress.pending
	// of the Run. metadata.name must then be <run>.<request>, so that a request is
	// decided once; if that Decision was refused, the next is named
	// <run>.<request>.2. The id of a request to approve a call ends in the digest of
	// tool and arguments, so the approval is good for this call only.
	// Required for Approve and Deny. Without it, an Answer is for the only open
	// question, and a Grant for the only limit that was reached.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$') && !self.matches('[.][0-9]+$')",message="must be an id from status.progress.pending of the Run, such as s3c1 or limit-steps-20"
	// +optional
	Request string `json:"request,omitempty"`

	// type is what the Decision does. Approve and Deny: make a call, or do not. Answer:
	// answer a question. Grant: raise a limit that was reached. Message: tell the agent
	// something before its next turn. If the only open request of the Run is a question
	// without a schema, the message is the answer.
	// +kubebuilder:validation:Enum=Approve;Deny;Answer;Grant;Message
	// +required
	Type DecisionType `json:"type"`

	// digest is the digest of the approved request, from status.progress.pending of
	// the Run. It is not needed, because request ends in its first 32 digits. If it is
	// set and is not the digest of the request, the Decision is refused.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="must be the digest of the request: 64 hexadecimal digits"
	// +optional
	Digest string `json:"digest,omitempty"`

	// scope is Call to approve this call only, or Run to approve every call of the
	// same tool that the same policy rule asks about, until the Run ends. Default
	// Call.
	// +kubebuilder:validation:Enum=Call;Run
	// +optional
	Scope DecisionScope `json:"scope,omitempty"`

	// groups are the groups in whose name the user decides. If the request lists
	// groups, one of them is required. An admission policy refuses groups that the
	// user is not a member of.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Groups []string `json:"groups,omitempty"`

	// value is the answer or the message, at most 4 KiB. If the request has a schema,
	// value must be JSON that matches it, for Approve too: '{"env": "staging"}'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 4096",message="must be at most 4 KiB"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]')",message="must be text: no control characters"
	// +optional
	Value string `json:"value,omitempty"`

	// grant is how much is added to the limits of the Run.
	// +optional
	Grant *Grant `json:"grant,omitempty"`

	// reason says why it was decided so. The agent reads the reason of a Deny.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Reason string `json:"reason,omitempty"`

	// by is the name of the user who creates the Decision, as kubectl auth whoami
	// prints it. An admission policy refuses any other name and says which is right.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	By string `json:"by"`
}

// Grant is how much is added to limits.
//
// +kubebuilder:validation:XValidation:rule="has(self.steps) || has(self.tokens) || has(self.cost)",message="grant is empty: set steps, tokens or cost"
type Grant struct {
	// steps is how many model turns are added to limits.steps.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// tokens is how many tokens are added to limits.tokens.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the amount that is added to limits.cost, such as 0.50USD.
	// +optional
	Cost *Money `json:"cost,omitempty"`
}

// DecisionType is what a Decision does.
type DecisionType string

// The types of a Decision.
const (
	DecisionApprove DecisionType = "Approve"
	DecisionDeny    DecisionType = "Deny"
	DecisionAnswer  DecisionType = "Answer"
	DecisionGrant   DecisionType = "Grant"
	DecisionMessage DecisionType = "Message"
)

// DecisionScope is which calls an approval allows.
type DecisionScope string

// The scopes of an approval.
const (
	ScopeCall DecisionScope = "Call"
	ScopeRun  DecisionScope = "Run"
)

// DecisionStatus says whether a Run acted on a Decision. An outcome is never changed.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.conditions) || oldSelf.conditions.filter(c, c.type == 'Applied' && c.status != 'Unknown').all(o, has(self.conditions) && self.conditions.exists(c, c.type == o.type && c.status == o.status && c.reason == o.reason))",message="Applied is True or False, and cannot be changed any more"
type DecisionStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions contains Applied: True when the Run acted on the Decision, False when
	// the Decision was refused, Unknown until either is known.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(bytes(c.message)) <= 1024)",message="a condition's message is at most 1 KiB"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DecisionList is a list of Decisions.
//
// +kubebuilder:object:root=true
type DecisionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Decision `json:"items"`
}
