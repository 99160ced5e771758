package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Decision is what a person says to a Run: yes or no to a call, the answer to a
// question, more of what a limit ended, or a message. It is said once, in its
// author's own name, and goes when the Run goes. Do not delete one before: it is
// the proof of what was decided, and a Run whose runner acted on a Decision that
// is not there any more ends with reason DecisionMismatch.
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
// +kubebuilder:validation:XValidation:rule="!has(self.spec.request) || self.metadata.name == self.spec.run + '.' + self.spec.request || self.metadata.name.startsWith(self.spec.run + '.' + self.spec.request + '.')",messageExpression="'name it ' + self.spec.run + '.' + self.spec.request + ': one request is decided once; where that one was refused, name the next ' + self.spec.run + '.' + self.spec.request + '.2'"
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 144",message="the name of a Decision is at most 144 characters: the status of its Run lists it"
type Decision struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what was decided. It is fixed.
	// +required
	Spec DecisionSpec `json:"spec"`

	// status is what became of it.
	// +kubebuilder:default={conditions:{{type:"Applied",status:"Unknown",reason:"Waiting",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status DecisionStatus `json:"status,omitempty"`
}

// DecisionSpec is what was decided. To decide otherwise, create another one.
//
// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="a Decision is fixed: create another one"
// +kubebuilder:validation:XValidation:rule="has(self.value) ? self.type in ['Answer', 'Message', 'Approve'] : !(self.type in ['Answer', 'Message'])",message="value goes with the types Answer and Message: it is what the agent is told; and with Approve where the request has a schema"
// +kubebuilder:validation:XValidation:rule="has(self.grant) == (self.type == 'Grant')",message="grant goes with the type Grant: write grant: {steps: 20}"
// +kubebuilder:validation:XValidation:rule="!(self.type in ['Approve', 'Deny']) || has(self.request)",message="Approve and Deny name the request that they answer: write request: s3c1"
// +kubebuilder:validation:XValidation:rule="has(self.digest) == (self.type == 'Approve')",message="digest goes with the type Approve: copy it from status.progress.pending of the Run, so that what runs is what you saw"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.type == 'Approve'",message="scope goes with the type Approve"
// +kubebuilder:validation:XValidation:rule="self.type != 'Message' || !has(self.request)",message="a Message answers no request: remove request, or use the type Answer"
type DecisionSpec struct {
	// run names the Run, in the same namespace.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +required
	Run string `json:"run"`

	// request is the id of what it answers, from status.progress.pending of the
	// Run; the Decision is then named <run>.<request>, so that it is decided once
	// (and the next, where that was refused, <run>.<request>.2).
	// Without it an Answer is one to the only question that there is, and a Grant
	// to the only limit.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be an id from status.progress.pending of the Run: write s3c1"
	// +optional
	Request string `json:"request,omitempty"`

	// type is Approve or Deny (a call), Answer (to a question), Grant (more of what
	// a limit ended) or Message (to the agent, at its next safe point; while it
	// waits for the answer to a question it is that answer, unless the question has a
	// schema).
	// +kubebuilder:validation:Enum=Approve;Deny;Answer;Grant;Message
	// +required
	Type DecisionType `json:"type"`

	// digest is that of the request, from status.progress.pending of the Run. A call
	// with another one is not what was approved: the Decision is refused.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{64}$')",message="must be the digest of the request: 64 hexadecimal digits"
	// +optional
	Digest string `json:"digest,omitempty"`

	// scope is Call, this call alone, or Run: every call of the same tool that the
	// same rule asks about, for the rest of the Run. Default Call.
	// +kubebuilder:validation:Enum=Call;Run
	// +optional
	Scope DecisionScope `json:"scope,omitempty"`

	// groups are those in whose name it is decided, where a request is for members
	// of a group only. An admission policy refuses groups that the author is not in.
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Groups []string `json:"groups,omitempty"`

	// value is the answer or the message, at most 4 KiB. Where the request has a
	// schema it is JSON, of an Approve too: '{"env": "staging"}'.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 4096",message="must be at most 4 KiB"
	// +kubebuilder:validation:XValidation:rule="!self.matches('[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f]')",message="must be text: no control characters"
	// +optional
	Value string `json:"value,omitempty"`

	// grant is what the limits are raised by, for this Run.
	// +optional
	Grant *Grant `json:"grant,omitempty"`

	// reason is why, for those who read it later. The agent is told that of a Deny.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Reason string `json:"reason,omitempty"`

	// by is the user name of who decided: the one that the API server knows the
	// requester by (kubectl auth whoami). An admission policy refuses any other and
	// says which is right.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	By string `json:"by"`
}

// Grant is what limits are raised by.
//
// +kubebuilder:validation:XValidation:rule="has(self.steps) || has(self.tokens) || has(self.cost)",message="grant something: write grant: {steps: 20}"
type Grant struct {
	// steps are more turns of the model.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// tokens are more tokens.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is more money.
	// +optional
	Cost *Money `json:"cost,omitempty"`
}

// DecisionType is what kind of thing was decided.
type DecisionType string

// The types of a Decision.
const (
	DecisionApprove DecisionType = "Approve"
	DecisionDeny    DecisionType = "Deny"
	DecisionAnswer  DecisionType = "Answer"
	DecisionGrant   DecisionType = "Grant"
	DecisionMessage DecisionType = "Message"
)

// DecisionScope is what an approval is good for.
type DecisionScope string

// What an approval is good for.
const (
	ScopeCall DecisionScope = "Call"
	ScopeRun  DecisionScope = "Run"
)

// DecisionStatus is what became of a Decision. Once that is known it stays.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.conditions) || oldSelf.conditions.filter(c, c.type == 'Applied' && c.status != 'Unknown').all(o, has(self.conditions) && self.conditions.exists(c, c.type == o.type && c.status == o.status && c.reason == o.reason))",message="what became of a Decision never changes"
type DecisionStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions holds Applied.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
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
