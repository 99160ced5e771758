package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Workflow composes agents: a graph of nodes, each of which is an Agent, another
// Workflow or an approval by a person. A Run of it has one child Run for each
// node that works.
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

	// spec is the graph.
	// +required
	Spec WorkflowSpec `json:"spec"`

	// status is what the operator found.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status WorkflowStatus `json:"status,omitempty"`
}

// WorkflowSpec is a graph of nodes. It may be changed at any time; a Run under
// way keeps the version that it started with, of the Agents too.
//
// Expressions are CEL. They read input, run (namespace, name, uid; in
// finally also reason and message) and nodes: nodes.x.output has the type of
// output.schema of x's Agent, nodes.x.text is its last word, nodes.x.state one of
// its states, nodes.x.counts its numbers. A node waits for every node that its
// expressions read. What does not compile, or has the wrong type, makes the
// Workflow not Ready with the node, the field and the column.
//
// +kubebuilder:validation:XValidation:rule="!has(self.finally) || size(self.nodes) + size(self.finally) <= 64",message="a Workflow has at most 64 nodes, those of finally included: put some into a Workflow of their own"
// +kubebuilder:validation:XValidation:rule="!has(self.finally) || self.finally.all(f, !self.nodes.exists(n, n.name == f.name))",message="a node of finally needs a name of its own"
// +kubebuilder:validation:XValidation:rule="!has(self.order) || self.order == 'Graph' || self.nodes.all(n, !has(n.dependsOn))",message="order: Sequential says what nodes wait for: remove dependsOn"
type WorkflowSpec struct {
	// description says, for people, what it is for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// input declares what a Run of the Workflow is given in Run.spec.input, which
	// expressions read as input.x. An input that is not valid makes the Workflow not
	// Ready, reason InputInvalid. A Run whose input does not fit ends before it starts,
	// reason Misconfigured. Default: nothing.
	// +optional
	Input *Input `json:"input,omitempty"`

	// order is Graph (a node starts when the nodes that it waits for have ended) or
	// Sequential (one after the other, as listed; dependsOn is refused). Nodes of finally
	// always use Graph. Default Graph.
	// +kubebuilder:validation:Enum=Graph;Sequential
	// +kubebuilder:default=Graph
	// +optional
	Order Order `json:"order,omitempty"`

	// nodes are the work. A dependency cycle, or a name that does not exist, makes the
	// Workflow not Ready, reason GraphInvalid.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +required
	Nodes []Node `json:"nodes"`

	// finally are nodes that start when all others have ended in any way, also if the Run is
	// stopped or has reached a limit. What they read of other nodes is optional. A failed
	// node of finally does not change how the Run ends, but its message names it.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(n, !has(n.approval))",message="finally cannot have approvals: remove approval"
	// +optional
	Finally []Node `json:"finally,omitempty"`

	// output is the answer of the whole: an object whose values are JSON, with
	// {cel: "..."} at any depth for what an expression gives. At most 16 KiB of JSON
	// when it is worked out. Default: none.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Output *runtime.RawExtension `json:"output,omitempty"`

	// limits are for the whole: what a node may use at most is set aside when it
	// starts, and what it used counts when it has ended. A node for which too little
	// is left waits, reason Queued, while others are active.
	// +optional
	Limits *WorkflowLimits `json:"limits,omitempty"`

	// finallyLimits are the part of limits that is reserved for finally. Default: a duration
	// of 10m (for each node if limits has no duration, otherwise for all together and at
	// most half of it), and a tenth of steps, tokens and cost. If nothing is left for the
	// other nodes, the Workflow is not Ready, reason NodeInvalid.
	// +kubebuilder:validation:XValidation:rule="!has(self.deadline)",message="deadline is for limits"
	// +optional
	FinallyLimits *WorkflowLimits `json:"finallyLimits,omitempty"`
}

// Order is in which order nodes start.
type Order string

// The orders.
const (
	OrderGraph      Order = "Graph"
	OrderSequential Order = "Sequential"
)

// WorkflowLimits end the Run of a Workflow that goes too far. What all its
// children use counts. A Run's spec.limits lower them.
type WorkflowLimits struct {
	// steps is the most turns of models. Default: no limit.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Steps *int32 `json:"steps,omitempty"`

	// tokens is the most tokens, input not read from a cache plus output. Default:
	// no limit but those of the Agents.
	// +optional
	Tokens *Tokens `json:"tokens,omitempty"`

	// cost is the most money. Default: no limit. Every Agent's Models need prices;
	// else the Workflow is not Ready, reason PricesMissing.
	// +optional
	Cost *Money `json:"cost,omitempty"`

	// duration is the longest time that runners may be alive, all together.
	// Default: no limit.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Duration *Duration `json:"duration,omitempty"`

	// deadline is the longest time from the creation of the Run to the end of its
	// nodes, whatever they wait for; finally runs after it. Default: none.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || duration(string(self)) >= duration('1s')",message="must be at least 1s"
	// +optional
	Deadline *Duration `json:"deadline,omitempty"`
}

// WorkflowStatus is what the operator found.
type WorkflowStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// nodes is how many nodes it has, those of finally included.
	// +optional
	Nodes int32 `json:"nodes,omitempty"`
	// conditions holds Ready.
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
