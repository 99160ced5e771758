package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeStatus is the state of a node of a workflow Run. The labels deckhand.dev/workflow-run and
// deckhand.dev/workflow-node select its child Runs.
type NodeStatus struct {
	// name is the name of the node.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 40",message="must be at most 40 bytes"
	// +required
	Name string `json:"name"`
	// state is Waiting, Running, Succeeded, Failed, Skipped (its condition when was false) or
	// NotReached (the Run ended before the node started).
	// +kubebuilder:validation:Enum=Waiting;Running;Succeeded;Failed;Skipped;NotReached
	// +required
	State NodeState `json:"state"`
	// reason is why the node is in that state. Waiting: Queued (a limit of the Workflow has no
	// room) or QuotaExceeded. Running: AwaitingApproval, or why the node fails when its child
	// Runs have ended. Failed: the reason of its child Run, or RunDeleted, ExpressionFailed,
	// TooManyItems, TooLarge, Cancelled (the Run ended first), RunRefused (the API server
	// refused its child Run) or Failed. NotReached: the reason of the Run.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z]*$`
	// +optional
	Reason string `json:"reason,omitempty"`
	// counts are the numbers of child Runs of the node: one, or with forEach and loop one for
	// each item or iteration.
	// +optional
	Counts *NodeCounts `json:"counts,omitempty"`
	// startedAt is when the node started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when the node finished.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// NodeCounts are the numbers of child Runs of a node.
type NodeCounts struct {
	// total is the number of items, or the number of iterations so far.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Total int32 `json:"total,omitempty"`
	// started is the number of child Runs that were created.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Started int32 `json:"started,omitempty"`
	// succeeded is the number of child Runs that succeeded.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed is the number of child Runs that failed.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// skipped is the number of items without a child Run, because the node failed first.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Skipped int32 `json:"skipped,omitempty"`
}

// NodeState is the state of a node.
type NodeState string

// The states of a node.
const (
	NodeWaiting    NodeState = "Waiting"
	NodeRunning    NodeState = "Running"
	NodeSucceeded  NodeState = "Succeeded"
	NodeFailed     NodeState = "Failed"
	NodeSkipped    NodeState = "Skipped"
	NodeNotReached NodeState = "NotReached"
)

// Reasons of a node that are not reasons of a Run.
const (
	// NodeReasonLost: a Run of the node was deleted before it finished.
	NodeReasonLost = "RunDeleted"
	// NodeReasonExpression: an expression of the node failed. The Run's message names it.
	NodeReasonExpression = "ExpressionFailed"
	// NodeReasonTooManyItems: forEach has more items than a node, or all nodes of a Run,
	// may have.
	NodeReasonTooManyItems = "TooManyItems"
	// NodeReasonTooLarge: a prompt, an input or an output is too large.
	NodeReasonTooLarge = "TooLarge"
	// NodeReasonCancelled: the Run ended while the node was running, and stopped it.
	NodeReasonCancelled = "Cancelled"
	// NodeReasonRefused: the API server refused to create its Run.
	NodeReasonRefused = "RunRefused"
	// NodeReasonFailed: its Run failed with a reason that this release does not know, for
	// example after a rollback of the operator.
	NodeReasonFailed = "Failed"
)
