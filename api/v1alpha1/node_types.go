package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Node is a node of a Workflow. Exactly one of agent, workflow and approval is required.
//
// +kubebuilder:validation:XValidation:rule="[has(self.agent), has(self.workflow), has(self.approval)].exists_one(x, x)",messageExpression="'exactly one of agent, workflow and approval is required: ' + (has(self.agent) || has(self.workflow) || has(self.approval) ? 'remove the others' : 'write agent: reviewer')"
// +kubebuilder:validation:XValidation:rule="!has(self.forEach) || !has(self.loop)",message="forEach and loop are not allowed together: move the loop into another Workflow, and name that in workflow"
// +kubebuilder:validation:XValidation:rule="!has(self.approval) || !(has(self.prompt) || has(self.input) || has(self.forEach) || has(self.loop) || has(self.limits) || has(self.maxRetries) || has(self.workspace))",message="prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || !(has(self.prompt) || has(self.maxRetries) || has(self.workspace))",message="prompt, maxRetries and workspace are not allowed for a workflow: remove them, and write input"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.prompt) || has(self.input)",message="prompt or input is required for an agent: write prompt, or input as the Agent declares it"
// +kubebuilder:validation:XValidation:rule="!has(self.workspace) || !has(self.forEach)",message="workspace and forEach are not allowed together, because items run in parallel: remove one of the two"
type Node struct {
	// name is the name of the node. It is a part of the names of its child Runs. Expressions
	// read a node write-tests as nodes.write_tests.
	// +kubebuilder:validation:MaxLength=40
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z]([-a-z0-9]*[a-z0-9])?$')",message="must begin with a letter and be lower-case letters, digits and -"
	// +required
	Name string `json:"name"`

	// agent is the name of the Agent, in the same namespace, that does the work. While it does
	// not exist, the Workflow is not Ready, reason NotFound.
	// +optional
	Agent ObjectName `json:"agent,omitempty"`

	// workflow is the name of another Workflow in the same namespace. While it does not exist,
	// this Workflow is not Ready, reason NotFound. Workflows that contain each other
	// are not Ready, reason Cycle; Workflows that are nested more than 5 deep, reason TooLarge.
	// +optional
	Workflow ObjectName `json:"workflow,omitempty"`

	// approval asks a user to approve or deny with a Decision. Until then the Run has the
	// reason AwaitingApproval, and the request is in its status.progress.pending. Only nodes
	// that wait for this node are held back. The output is {approved, by, at, reason, input}. A
	// Deny fails the node with reason Denied. If an expression of another node reads
	// output.approved, the node succeeds in both cases.
	// +optional
	Approval *ApprovalNode `json:"approval,omitempty"`

	// prompt is the first user message to the agent. ${{ expression }} is replaced by the value
	// of the expression, in which expressions are not evaluated again; $${{ is a literal ${{.
	// If the result is larger than 64 KiB, the node fails with reason TooLarge.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="must be at most 64 KiB"
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// input has the values that spec.input of the Agent or Workflow declares: a JSON object, in
	// which {cel: "..."} at any depth is replaced by the value of the expression. Names and
	// types are checked when the Workflow is applied. If the result is larger than 16 KiB, the
	// node fails with reason TooLarge.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Input *runtime.RawExtension `json:"input,omitempty"`

	// dependsOn has the names of nodes to wait for, in addition to the nodes that expressions
	// of this node read. At most 64.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=40
	// +optional
	DependsOn []string `json:"dependsOn,omitempty"`

	// when is a CEL expression of type bool, evaluated once when the node could start. If it is
	// false, the node is skipped. Nodes that wait for a skipped node still start. Default:
	// true.
	// +optional
	When Expression `json:"when,omitempty"`

	// forEach runs the node once for each item of a list. The output of the node is the list of
	// the outputs, in the order of the items. Default: the node runs once.
	// +optional
	ForEach *ForEach `json:"forEach,omitempty"`

	// loop repeats the node until a condition is true. The output of the node is the output of
	// the last iteration. Default: the node runs once.
	// +optional
	Loop *Loop `json:"loop,omitempty"`

	// onFailure is what happens if the node fails. Fail: no other node starts, active nodes are
	// stopped, and after finally the Run ends with reason NodeFailed. Continue: the Run
	// continues, and expressions of other nodes read the output of this node as an optional
	// value. Default Fail.
	// +kubebuilder:validation:Enum=Fail;Continue
	// +optional
	OnFailure OnFailure `json:"onFailure,omitempty"`

	// maxRetries is spec.maxRetries of the child Runs of this node, 0 to 20. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// limits lower the limits of the Agent or Workflow for each child Run of this node. A limit
	// that is not set here stays as they set it. One above theirs makes the Workflow not Ready,
	// reason Invalid.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// workspace shares the files of another node. Default: each child Run has its own files.
	// +optional
	Workspace *NodeWorkspace `json:"workspace,omitempty"`
}

// Expression is a CEL expression of at most 4 KiB.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=4096
type Expression string

// ForEach runs a node once for each item of a list. Expressions of the node can read item and
// index, which starts at 0.
type ForEach struct {
	// items is a CEL expression of a list of at most 500 items, evaluated once when the node
	// starts. A longer list fails the node with reason TooManyItems.
	// +required
	Items Expression `json:"items"`

	// maxParallel is how many items run in parallel, 1 to 500. Default 5.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=500
	// +optional
	MaxParallel int32 `json:"maxParallel,omitempty"`
}

// Loop repeats a node until a condition is true. Expressions of the node can read iteration,
// which starts at 1, and previous, the iteration before, as an optional value.
type Loop struct {
	// until is a CEL expression of type bool, evaluated after each iteration. It can read
	// self.output, self.text and self.succeeded of that iteration. True ends the loop.
	// +required
	Until Expression `json:"until"`

	// maxIterations is the maximum number of iterations, 1 to 100. If until is still false
	// after the last one, the node fails with reason IterationLimit. Default 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxIterations int32 `json:"maxIterations,omitempty"`
}

// DefaultIterations is the default of maxIterations.
const DefaultIterations = 10

// OnFailure is what happens when a node fails.
type OnFailure string

// What follows when a node fails.
const (
	OnFailureFail     OnFailure = "Fail"
	OnFailureContinue OnFailure = "Continue"
)

// NodeWorkspace shares the files of another node.
type NodeWorkspace struct {
	// from is the name of a node whose PersistentVolumeClaim this node mounts too. This node
	// waits for that node. The Agents of both need workspace.durability Volume, otherwise the
	// Workflow is not Ready, reason Invalid. With accessMode ReadWriteOnce, nodes that use
	// the same claim at the same time run on the same cluster node.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +required
	From string `json:"from"`
}

// ApprovalNode asks a user to approve or deny with a Decision.
type ApprovalNode struct {
	// message is the text of the request. ${{ expression }} is replaced by the value of the
	// expression. The result is cut after 1 KiB.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 4096",message="must be at most 4 KiB"
	// +required
	Message string `json:"message"`

	// approvers restrict which users may decide. Default: all users who may create Decisions.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`

	// expiresAfter is how long the request stays open, 1s to 720h. After it the request counts
	// as denied. Default 168h.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || (duration(self) >= duration('1s') && duration(self) <= duration('720h'))",message="must be at least 1s and at most 720h: write 24h, or remove it"
	// +optional
	ExpiresAfter Duration `json:"expiresAfter,omitempty"`

	// input declares a value that the approver gives in spec.value of the Decision. Its JSON
	// Schema has at most 1 KiB. Default: no value.
	// +optional
	Input *Input `json:"input,omitempty"`
}
