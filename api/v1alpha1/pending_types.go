package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PendingRequest is a request to a user, or to the operator for a child Run.
type PendingRequest struct {
	// id is the id of the request. A Decision on it has the id in spec.request. The id of a
	// request to approve a call ends in the first 32 digits of digest, so that the approval is
	// not valid for another call.
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 80",message="must be at most 80 bytes"
	// +optional
	ID string `json:"id,omitempty"`
	// kind is Approval (of a tool call, or of a node of a workflow), Question, Limit (to raise
	// a limit that was reached) or Delegation (a child Run, which the operator creates without
	// a Decision).
	// +kubebuilder:validation:Enum=Approval;Question;Limit;Delegation
	// +optional
	Kind string `json:"kind,omitempty"`
	// agent is the name of the Agent that asks, if it is not the Agent of the Run. For a
	// Delegation it is the Agent of the child Run.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Agent string `json:"agent,omitempty"`
	// question is the text of the request, at most 1 KiB.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Question string `json:"question,omitempty"`
	// tool is the tool of the call, for an Approval.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Tool string `json:"tool,omitempty"`
	// args are the arguments of the call as JSON, at most 1 KiB; for a Delegation, the input of
	// the child Run, at most 4 KiB.
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 4096",message="must be at most 4 KiB"
	// +optional
	Args string `json:"args,omitempty"`
	// argsTruncated is true if args were too long and their middle is omitted. The event
	// pending in the log of the pod has all of them.
	// +optional
	ArgsTruncated bool `json:"argsTruncated,omitempty"`
	// cancelled is true if the call that asks for a child Run was cancelled. The operator then
	// stops the child Run, and the runner waits up to a minute for its end.
	// +optional
	Cancelled bool `json:"cancelled,omitempty"`
	// digest is the SHA-256 digest of the tool and its complete arguments. The runner computes
	// it again before it makes the call; if it differs, the call needs another approval.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Digest string `json:"digest,omitempty"`
	// displayDigest is the SHA-256 digest of the request as the event pending in the log of the
	// pod shows it, with all arguments. kubectl deckhand shows text of a log only if it has this
	// digest. It is empty for a Delegation, for requests of a Workflow, which are in no log, and if
	// an older runner asks: then no text of a log is proven.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	DisplayDigest string `json:"displayDigest,omitempty"`
	// rule is the name of the policy rule that requires the approval.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Rule string `json:"rule,omitempty"`
	// approvers are the users who may decide. If empty, all users who may create Decisions.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`
	// schema is the JSON Schema of spec.value of the Decision. If empty, value is any text.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Schema string `json:"schema,omitempty"`
	// askedAt is when the request was made.
	// +optional
	AskedAt *metav1.Time `json:"askedAt,omitempty"`
	// expiresAt is when the request expires. Then a call is not made, a question stays
	// unanswered, and a limit is not raised.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// DecidedRequest is a Decision that the Run acted on or refused.
type DecidedRequest struct {
	// name is the name of the Decision.
	// +kubebuilder:validation:MaxLength=144
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 144",message="must be at most 144 bytes"
	// +optional
	Name string `json:"name,omitempty"`
	// request is the id of the request that was decided.
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 80",message="must be at most 80 bytes"
	// +optional
	Request string `json:"request,omitempty"`
	// type is the type of the Decision.
	// +kubebuilder:validation:Enum=Approve;Deny;Answer;Grant;Message
	// +optional
	Type DecisionType `json:"type,omitempty"`
	// digest is the digest of the call that was approved or denied.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Digest string `json:"digest,omitempty"`
	// refused is why the Decision was refused. It is empty if the Run acted on it.
	// +kubebuilder:validation:MaxLength=124
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 124",message="must be at most 124 bytes"
	// +optional
	Refused string `json:"refused,omitempty"`
}
