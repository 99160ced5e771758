package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Workflow is a graph of nodes. Each node is an Agent, another Workflow, or an approval by a
// user. A Run that names the Workflow creates a child Run for each node, in the order of their
// dependencies, as a PipelineRun of Tekton creates TaskRuns.
//
// Example:
//
//	apiVersion: deckhand.dev/v1alpha1
//	kind: Workflow
//	metadata: {name: article}
//	spec:
//	  nodes:
//	  - name: draft
//	    agent: writer
//	    prompt: Write about tides.
//	  - name: check
//	    agent: reviewer
//	    prompt: "Are the facts right? ${{ nodes.draft.text }}"
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=dwf,categories=deckhand
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Workflow struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the graph of nodes. It can be changed at any time; an active Run keeps the
	// revisions of the Workflow and its Agents with which it started.
	//
	// Prompts and messages have CEL expressions in ${{ }}; when, items, until and {cel: "..."}
	// are CEL expressions too. They can read:
	//   - input.x: a value of spec.input.
	//   - nodes.x.output: the output of node x, with the type of output.schema of its Agent.
	//   - nodes.x.text: the final answer of node x.
	//   - nodes.x.state: Waiting, Running, Succeeded, Failed, Skipped or NotReached.
	//   - nodes.x.counts: total, started, succeeded, failed and skipped child Runs.
	//   - run.namespace, run.name and run.uid; in finally also run.reason and run.message.
	//
	// A node waits for each node that its expressions read. An expression that does not compile
	// or has the wrong type makes the Workflow not Ready, reason Invalid; the message
	// names the node, the field and the column.
	// +required
	Spec WorkflowSpec `json:"spec"`

	// status is the observed state of the Workflow.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status WorkflowStatus `json:"status,omitempty"`
}

// WorkflowSpec is a graph of nodes. It can be changed at any time; an active Run keeps the
// revisions of the Workflow and its Agents with which it started.
//
// Expressions are CEL. They can read input, run, nodes.x.output, nodes.x.text, nodes.x.state
// and nodes.x.counts. A node waits for each node that its expressions read. An expression that
// does not compile or has the wrong type makes the Workflow not Ready, reason
// Invalid; the message names the node, the field and the column.
//
// +kubebuilder:validation:XValidation:rule="!has(self.finally) || size(self.nodes) + size(self.finally) <= 64",message="nodes and finally must have at most 64 nodes together: move some into another Workflow"
// +kubebuilder:validation:XValidation:rule="!has(self.finally) || self.finally.all(f, !self.nodes.exists(n, n.name == f.name))",message="a node of finally has the name of another node: give one of the two another name"
// +kubebuilder:validation:XValidation:rule="!has(self.order) || self.order == 'Graph' || self.nodes.all(n, !has(n.dependsOn))",message="dependsOn is not allowed with order: Sequential: remove dependsOn"
type WorkflowSpec struct {
	// description is what the Workflow is for, for users.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x08\x0b-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +optional
	Description string `json:"description,omitempty"`

	// input declares the values of spec.input of its Runs. Expressions read them as input.x. An
	// invalid declaration makes the Workflow not Ready, reason Invalid. A Run whose values
	// do not match ends before it starts, reason Misconfigured. Default: no values.
	// +optional
	Input *Input `json:"input,omitempty"`

	// order is Graph or Sequential. Graph: a node starts when the nodes that it waits for have
	// ended, and other nodes run in parallel. Sequential: each node waits for the node listed
	// before it, and dependsOn is not allowed. Nodes of finally always use Graph. Default
	// Graph.
	// +kubebuilder:validation:Enum=Graph;Sequential
	// +kubebuilder:default=Graph
	// +optional
	Order Order `json:"order,omitempty"`

	// nodes are the nodes of the graph, 1 to 64, those of finally included. A dependency cycle,
	// or a reference to a node that does not exist, makes the Workflow not Ready, reason
	// Invalid.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Nodes []Node `json:"nodes"`

	// finally are nodes that start when all other nodes have ended, also if the Run failed, was
	// stopped or reached a limit. Outputs of other nodes may be absent here. A failed node of
	// finally does not change how the Run ends, but the message of the Run names it. At most
	// 16. Default: none.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(n, !has(n.approval))",message="approval is not allowed in finally: remove approval"
	// +optional
	Finally []Node `json:"finally,omitempty"`

	// output is the result of a Run: a JSON object, in which {cel: "..."} at any depth is
	// replaced by the value of the expression. If the result is larger than 16 KiB, the Run
	// ends with reason InvalidOutput. Default: no result.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Output *runtime.RawExtension `json:"output,omitempty"`

	// limits bound all child Runs of a Run together. When a child Run starts, the most that it
	// may use is reserved; when it ends, the reservation is replaced by its usage. A node for
	// which too little is left waits with reason Queued while other nodes are active. When a
	// limit is reached, the Run ends with reason StepLimit, TokenLimit, CostLimit,
	// DurationLimit, PendingTimeout or DeadlineExceeded. Default: no limits but pending.
	// +optional
	Limits *WorkflowLimits `json:"limits,omitempty"`

	// finallyLimits is the part of limits that is reserved for finally. If nothing is left for
	// the other nodes, the Workflow is not Ready, reason Invalid. Default: see each field.
	// +optional
	FinallyLimits *FinallyLimits `json:"finallyLimits,omitempty"`
}

// Order is the order in which nodes start.
type Order string

// The orders.
const (
	OrderGraph      Order = "Graph"
	OrderSequential Order = "Sequential"
)

// WorkflowLimits bound all child Runs of a workflow Run together. spec.limits of a Run can
// lower them.
type WorkflowLimits struct {
	// steps is the maximum number of turns of models, 1 to 1,000,000. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// tokens is the maximum number of tokens: output tokens, and input tokens that were not
	// read from a prompt cache. Default: no limit besides those of the Agents.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the maximum cost in US dollars, for example 5USD. All Models of the Agents need
	// prices, otherwise the Workflow is not Ready, reason PricesMissing. Default: no limit.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0+([.]0+)?USD$')",message="must be more than 0USD: write 0.50USD, or remove cost"
	// +optional
	Cost *Money `json:"cost,omitempty"`

	// duration is the maximum running time of all child Runs together, 1s to 720h. Default: no
	// limit.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Duration *Duration `json:"duration,omitempty"`

	// pending is how long the Run may wait, while none of its child Runs is active, for a quota
	// or a permission to create the next, 1s to 720h. While the Workflow is not Ready, a Run
	// waits for at most 10m, and less if its own limits.pending is less. Reason when reached:
	// PendingTimeout. Default 10m.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Pending *Duration `json:"pending,omitempty"`

	// deadline is the maximum time from the creation of the Run to the end of its nodes,
	// waiting included, 1s to 720h. Nodes of finally run after it. Default: none.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Deadline *Duration `json:"deadline,omitempty"`
}

// WorkflowLimits returns the limits of finally in the type of a Workflow's limits; nil: there are
// none.
func (l *FinallyLimits) WorkflowLimits() *WorkflowLimits {
	if l == nil {
		return nil
	}
	return &WorkflowLimits{Steps: l.Steps, Tokens: l.Tokens, Cost: l.Cost, Duration: l.Duration}
}

// FinallyLimits is the part of the limits of a Workflow that is reserved for the nodes of
// finally.
type FinallyLimits struct {
	// steps is the number of turns of models, 1 to 1,000,000. Default: a tenth of limits.steps.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// tokens is the number of tokens, counted as in limits. Default: a tenth of limits.tokens.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the cost in US dollars, for example 0.50USD. All Models of the Agents need prices,
	// otherwise the Workflow is not Ready, reason PricesMissing. Default: a tenth of limits.cost.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^0+([.]0+)?USD$')",message="must be more than 0USD: write 0.50USD, or remove cost"
	// +optional
	Cost *Money `json:"cost,omitempty"`

	// duration is the running time, 1s to 720h: for each node if limits has no duration, otherwise
	// for all nodes of finally together, and at most half of limits.duration. Default 10m.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || duration(self) >= duration('1s')",message="must be at least 1s: write 10m, or remove it"
	// +optional
	Duration *Duration `json:"duration,omitempty"`
}

// WorkflowStatus is the observed state of a Workflow.
type WorkflowStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// nodes is the number of nodes, those of finally included.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
	// conditions has Ready: the graph and its expressions are valid, and every Agent and
	// Workflow that it names is Ready. For GitOps tools it also has Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// WorkflowList is a list of Workflows.
//
// +kubebuilder:object:root=true
type WorkflowList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Workflow `json:"items"`
}
