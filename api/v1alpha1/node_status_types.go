package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// NodeStatus is how far a node of a workflow Run came. Its Runs are found by
// their labels deckhand.dev/workflow-run and deckhand.dev/node.
type NodeStatus struct {
	// name of the node.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 40",message="must be at most 40 bytes"
	// +required
	Name string `json:"name"`
	// state is Waiting, Running, Succeeded, Failed, Skipped (its when was false) or
	// NotReached (the Run ended first).
	// +kubebuilder:validation:Enum=Waiting;Running;Succeeded;Failed;Skipped;NotReached
	// +required
	State NodeState `json:"state"`
	// reason is why: of what failed the reason of its Run, of what waits what for.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 32",message="must be at most 32 bytes"
	// +optional
	Reason string `json:"reason,omitempty"`
	// counts are its Runs; one, where it has neither forEach nor loop.
	// +optional
	Counts *NodeCounts `json:"counts,omitempty"`
	// startedAt is when it began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
	// finishedAt is when it ended.
	// +optional
	FinishedAt *metav1.Time `json:"finishedAt,omitempty"`
}

// NodeCounts are the Runs of a node: items, or iterations.
type NodeCounts struct {
	// total is how many there will be, of items; how many there were, of iterations.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Total int32 `json:"total,omitempty"`
	// started is how many began.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Started int32 `json:"started,omitempty"`
	// succeeded is how many did their work.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Succeeded int32 `json:"succeeded,omitempty"`
	// failed is how many did not.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Failed int32 `json:"failed,omitempty"`
	// skipped is how many items never began because the node failed first.
	// +kubebuilder:validation:Maximum=500
	// +optional
	Skipped int32 `json:"skipped,omitempty"`
}

// NodeState is how far a node came.
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

// Reasons of a node that no Run has.
const (
	// NodeReasonLost: a Run of it was deleted before it had ended.
	NodeReasonLost = "RunDeleted"
	// NodeReasonExpression: an expression of it failed; the Run's message says which.
	NodeReasonExpression = "ExpressionFailed"
	// NodeReasonTooManyItems: forEach gave more items than one node, or one Run, may
	// have.
	NodeReasonTooManyItems = "TooManyItems"
	// NodeReasonTooLarge: a prompt, an input or an output outgrew its bound.
	NodeReasonTooLarge = "TooLarge"
	// NodeReasonCancelled: the Run ended while the node worked, which was then
	// stopped.
	NodeReasonCancelled = "Cancelled"
	// NodeReasonRefused: the cluster refused its Run.
	NodeReasonRefused = "RunRefused"
)
