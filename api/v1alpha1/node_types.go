package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Node is one element of a Workflow.
//
// +kubebuilder:validation:XValidation:rule="[has(self.agent), has(self.workflow), has(self.approval)].exists_one(x, x)",message="a node is one of agent, workflow and approval: write agent: reviewer"
// +kubebuilder:validation:XValidation:rule="!has(self.forEach) || !has(self.loop)",message="forEach and loop do not go together: put the loop into a Workflow of its own and name it here"
// +kubebuilder:validation:XValidation:rule="!has(self.approval) || !(has(self.prompt) || has(self.input) || has(self.forEach) || has(self.loop) || has(self.limits) || has(self.maxRetries) || has(self.workspace))",message="an approval has a message and nothing to work with: remove prompt, input, forEach, loop, limits, maxRetries and workspace"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || !(has(self.prompt) || has(self.maxRetries) || has(self.workspace))",message="a workflow takes input and no prompt: write input, and remove prompt, maxRetries and workspace"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.prompt) || has(self.input)",message="say what the agent is to do: write prompt, or input as the Agent declares it"
// +kubebuilder:validation:XValidation:rule="!has(self.workspace) || !has(self.forEach)",message="items work side by side, each in a workspace of its own: remove workspace or forEach"
type Node struct {
	// name of the node, part of the names of its Runs.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must begin with a letter and be lower-case letters, digits and -"
	// +required
	Name string `json:"name"`

	// agent names the Agent in the same namespace that does the work.
	// +optional
	Agent ObjectName `json:"agent,omitempty"`

	// workflow names another Workflow in the same namespace. A reference cycle makes the
	// Workflow not Ready, reason WorkflowCycle.
	// +optional
	Workflow ObjectName `json:"workflow,omitempty"`

	// approval asks a user for a decision.
	// +optional
	Approval *ApprovalNode `json:"approval,omitempty"`

	// prompt says what the agent should do. ${{ expression }} is replaced by its value, and
	// expressions within the value are not evaluated; $${{ is a literal ${{. If the result
	// is larger than 64 KiB, the node fails.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="must be at most 64 KiB"
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// input gives the values that the Agent or the Workflow declares as its input: an
	// object of JSON values, with {cel: "..."} at any depth for the value of an
	// expression. Names and types are checked when the Workflow is applied. At most
	// 16 KiB of JSON with the values of the expressions.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Input *runtime.RawExtension `json:"input,omitempty"`

	// dependsOn names nodes to wait for, in addition to the nodes that expressions read.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=40
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`

	// when is a condition, evaluated once when the node could start. If it is false, the
	// node is skipped. Nodes that wait for it still start, unless their own when is false.
	// +optional
	When Expression `json:"when,omitempty"`

	// forEach does the node once for each item of a list. Its output is the list of
	// theirs, in their order.
	// +optional
	ForEach *ForEach `json:"forEach,omitempty"`

	// loop repeats the node until a condition holds. Its output is the output of the last
	// iteration.
	// +optional
	Loop *Loop `json:"loop,omitempty"`

	// onFailure says what happens if the node fails. Fail: no other node starts, active
	// nodes are stopped, and after finally the Run ends with reason NodeFailed. Continue:
	// the Run continues, and other nodes read the output of this node as an optional value.
	// Default Fail.
	// +kubebuilder:validation:Enum=Fail;Continue
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// maxRetries of the Runs of this node, as Run.spec.maxRetries. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// limits lower those of the Agent for each Run of this node.
	// +kubebuilder:validation:XValidation:rule="!has(self.whenReached)",message="whenReached is the Agent's to say: remove it"
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// workspace is where the files of an agent are. Default: its own.
	// +optional
	Workspace *NodeWorkspace `json:"workspace,omitempty"`
}

// Expression is a CEL expression, of at most 4 KiB.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
type Expression string

// ForEach runs a node once for each item of a list. Expressions of the node read item and
// index, from 0.
type ForEach struct {
	// items is an expression for a list of at most 500 items, evaluated once when the node
	// starts. A longer list fails the node.
	// +required
	Items Expression `json:"items"`

	// maxParallel is how many items run in parallel, 1 to 500. Default 5.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +optional
	MaxParallel int32 `json:"maxParallel,omitempty"`
}

// Loop repeats a node until a condition holds. Expressions of the node read iteration, from
// 1, and previous: the iteration before, which is optional.
type Loop struct {
	// until is a condition that is evaluated after each iteration; self is that iteration
	// (output, text, succeeded). True ends the loop.
	// +required
	Until Expression `json:"until"`

	// maxIterations bounds the iterations, 1 to 100. If the condition does not hold after
	// them, the node fails with reason IterationLimit. Default 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxIterations int32 `json:"maxIterations,omitempty"`
}

// OnFailure is what follows when a node fails.
type OnFailure string

// What follows when a node fails.
const (
	OnFailureFail     OnFailure = "Fail"
	OnFailureContinue OnFailure = "Continue"
)

// NodeWorkspace is where the files of a node are.
type NodeWorkspace struct {
	// from names a node whose files this one works on: it waits for it, and has its
	// volume. Agents of both have workspace.durability Volume; else the Workflow is
	// not Ready, reason NodeInvalid. Two that have the files of one at the same time
	// are on one machine.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	From string `json:"from"`
}

// ApprovalNode asks a person. The request stands in status.progress.pending of
// the Run and is answered by a Decision. The node's output is {approved, by, at,
// reason, input}. A Deny fails it with reason Denied, unless an expression
// reads approved: then it succeeds with false.
type ApprovalNode struct {
	// message is what is asked, with ${{ expression }} as in a prompt; at most 1 KiB
	// when the values are in, the rest is cut.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 4096",message="must be at most 4 KiB"
	// +required
	Message string `json:"message"`

	// approvers narrow who may decide. Default: every user who may create Decisions.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`

	// expiresAfter is how long it waits; then it counts as denied. Default 168h.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || (duration(string(self)) >= duration('1s') && duration(string(self)) <= duration('720h'))",message="must be at least 1s and at most 720h"
	// +optional
	ExpiresAfter Duration `json:"expiresAfter,omitempty"`

	// input declares the value that an approver gives with the Decision. At most 1 KiB
	// as a JSON Schema. Default: no value.
	// +optional
	Input *Input `json:"input,omitempty"`
}
