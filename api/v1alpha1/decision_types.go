package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decision is what a user decides for a Run: to approve or deny a tool call, to answer a
// question, to raise a limit, or to send the agent a message. The requests that a Run waits for
// are in its status.progress.pending. A Decision cannot be changed, and it is deleted with its
// Run.
//
// Example:
//
//	apiVersion: deckhand.dev/v1alpha1
//	kind: Decision
//	metadata: {name: fix.s3c1}
//	spec:
//	  run: fix
//	  request: s3c1
//	  type: Answer
//	  value: Blue.
//	  by: ann
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
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 144",message="metadata.name must have at most 144 characters, because the status of the Run lists it"
type Decision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user decides. It cannot be changed: to decide otherwise, create another
	// Decision.
	// +required
	Spec DecisionSpec `json:"spec"`

	// status shows whether the Run acted on the Decision.
	// +kubebuilder:default={conditions:{{type:"Applied",status:"Unknown",reason:"Waiting",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status DecisionStatus `json:"status,omitempty"`
}

// DecisionSpec is what the user decides. It cannot be changed: to decide otherwise, create
// another Decision.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="the spec of a Decision cannot be changed: create another Decision"
// +kubebuilder:validation:XValidation:rule="has(self.value) ? self.type in ['Answer', 'Message', 'Approve'] : !(self.type in ['Answer', 'Message'])",messageExpression="'the type ' + self.type + (has(self.value) ? ' has no value: remove value, or write what you mean in reason' : ' needs a value: write value: Yes.')"
// +kubebuilder:validation:XValidation:rule="has(self.grant) == (self.type == 'Grant')",message="grant is required for the type Grant and not allowed for other types: write grant: {steps: 20}"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['Approve', 'Deny']) || has(self.request)",message="request is required for the types Approve and Deny: copy the id from status.progress.pending of the Run"
// +kubebuilder:validation:XValidation:rule="!has(self.digest) || self.type == 'Approve'",message="digest is allowed for the type Approve only: remove it"
// +kubebuilder:validation:XValidation:rule="self.type != 'Approve' || has(self.digest) || !has(self.request) || self.request.startsWith('approval-') || self.request.matches('-[0-9a-f]{32}$')",messageExpression="'the type Approve needs the id of a tool call, which ends in 32 hex digits: copy the whole id from status.progress.pending of the Run, such as s3c1-0123456789abcdef0123456789abcdef. If ' + self.request + ' is a question or a limit, use the type Answer or Grant'"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.type == 'Approve'",message="scope is allowed for the type Approve only: remove it"
// +kubebuilder:validation:XValidation:rule="self.type != 'Message' || !has(self.request)",message="request is not allowed for the type Message: remove it, or use the type Answer"
// +kubebuilder:validation:XValidation:rule="!has(self.images) || self.type == 'Message'",message="images is allowed for the type Message only: remove it"
type DecisionSpec struct {
	// run is the name of the Run, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Run: lower-case letters, digits and -"
	// +required
	Run string `json:"run"`

	// request is the id of the request that is decided, from status.progress.pending of the
	// Run. metadata.name must be <run>.<request>, so that each request is decided once; if that
	// Decision was refused, the next one is <run>.<request>.2. The id of a request to approve a
	// call ends in the digest of the call, so that the approval is not valid for another call.
	// Required for Approve and Deny. Default: the only open question (Answer), or the only
	// limit that was reached (Grant).
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$') && !self.matches('[.][0-9]+$')",message="must be an id from status.progress.pending of the Run, such as s3c1 or limit-steps-20"
	// +optional
	Request string `json:"request,omitempty"`

	// type is what the Decision does. Approve and Deny: a tool call is made, or not. Answer: a
	// question is answered. Grant: a limit that was reached is raised. Message: the agent reads
	// value before its next turn. If the only open request of the Run is a question without a
	// schema, a Message answers it.
	// +kubebuilder:validation:Enum=Approve;Deny;Answer;Grant;Message
	// +required
	Type DecisionType `json:"type"`

	// digest is the digest of the request, from status.progress.pending of the Run. If it is
	// not the digest of the request, the Decision is refused. Only for Approve. Default: not
	// checked, because request ends in its first 32 digits.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="must be the digest of the request: 64 hexadecimal digits"
	// +optional
	Digest string `json:"digest,omitempty"`

	// scope is which calls an Approve allows. Call: this call. Run: every call of the same tool
	// that the same policy rule asks about, until the Run ends. Default Call.
	// +kubebuilder:validation:Enum=Call;Run
	// +optional
	Scope DecisionScope `json:"scope,omitempty"`

	// groups are user groups on whose behalf the user decides, at most 8. If the request has
	// approvers, one of their groups is required, except of a user whom they name. An admission
	// policy refuses groups that the user is not a member of. Default: none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Groups []string `json:"groups,omitempty"`

	// value is the answer or the message, at most 4 KiB. Required for Answer and Message. If
	// the request has a schema, value must be JSON that matches it, also for Approve: '{"env":
	// "staging"}'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 4096",message="must be at most 4 KiB"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]')",message="must be text: remove control characters"
	// +optional
	Value string `json:"value,omitempty"`

	// images are files of the workspace that the agent is shown with the message, at most 20: PNG,
	// JPEG, GIF, WebP or PDF. The paths are below /workspace, for example docs/chart.png. The agent
	// reads a line for a file that cannot be shown. Only for Message. Default: none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('/') && !self.endsWith('/') && !self.matches('(^|/)[.]?[.]?(/|$)|[\\x00-\\x1f\\x7f]')",message="must be a file below /workspace: write docs/chart.png"
	// +optional
	Images []string `json:"images,omitempty"`

	// grant is how much is added to the limits of the Run. Required for Grant.
	// +optional
	Grant *Grant `json:"grant,omitempty"`

	// reason is why the user decides so, at most 1 KiB. The agent reads the reason of a Deny.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Reason string `json:"reason,omitempty"`

	// by is the name of the user who creates the Decision: kubectl auth whoami prints it. An
	// admission policy refuses another name, and its message has the right one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +required
	By string `json:"by"`
}

// Grant is how much is added to the limits of a Run.
//
// +kubebuilder:validation:XValidation:rule="has(self.steps) || has(self.tokens) || has(self.cost)",message="grant is empty: set steps, tokens or cost"
type Grant struct {
	// steps is how many turns are added to limits.steps.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// tokens is how many tokens are added to limits.tokens, for example 500k.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the amount that is added to limits.cost, for example 0.50USD.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0+([.]0+)?USD$')",message="must be more than 0USD: write 0.50USD, or remove cost"
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

// DecisionStatus shows whether a Run acted on a Decision.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.conditions) || oldSelf.conditions.filter(c, c.type == 'Applied' && c.status != 'Unknown').all(o, has(self.conditions) && self.conditions.exists(c, c.type == o.type && c.status == o.status && c.reason == o.reason))",message="the condition Applied is final and cannot be changed"
type DecisionStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Applied: Unknown until the Run has read the Decision, then True if the Run
	// acted on it, or False if it refused it. The message of a refusal has the cause and the
	// name for the next Decision. True and False are final. For GitOps tools it also has
	// Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(bytes(c.message)) <= 1024)",message="the message of a condition must have at most 1 KiB"
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
