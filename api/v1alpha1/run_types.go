package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Run is one piece of work, done once: by an Agent with a prompt, or by a Workflow with its
// input.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=deckhand
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target.name`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Steps",type=integer,JSONPath=`.status.progress.counts.steps`
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.status.progress.usage.totalTokens`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.progress.usage.cost`
// +kubebuilder:printcolumn:name="Errors",type=integer,priority=1,description="model calls and tool calls that failed",JSONPath=`.status.progress.counts.errors`
// +kubebuilder:printcolumn:name="Workflow-Node",type=string,priority=1,description="the node of the workflow that the Run belongs to",JSONPath=`.metadata.labels['deckhand\.dev/node']`
// +kubebuilder:printcolumn:name="Attempt",type=integer,priority=1,JSONPath=`.status.attempt.number`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.attempt.pod`
// +kubebuilder:printcolumn:name="Model",type=string,priority=1,JSONPath=`.status.progress.model`
// +kubebuilder:printcolumn:name="Duration",type=string,priority=1,description="how long runners were alive",JSONPath=`.status.progress.usage.duration`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",message="the name of a Run is at most 63 lower-case letters, digits and -: it begins the names of its pods and Decisions, and is a label"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.status) || !has(oldSelf.status.completionTime) || self.spec.desiredState == oldSelf.spec.desiredState",messageExpression="'spec.desiredState cannot be changed: Run ' + self.metadata.name + ' has finished; create another Run'",fieldPath=".spec.desiredState"
type Run struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the work. Only desiredState and ttlSecondsAfterFinished may change.
	// +kubebuilder:validation:XValidation:rule="has(self.agent) == has(oldSelf.agent) && (!has(self.agent) || self.agent == oldSelf.agent)",message="spec.agent is fixed: create another Run"
	// +kubebuilder:validation:XValidation:rule="has(self.workflow) == has(oldSelf.workflow) && (!has(self.workflow) || self.workflow == oldSelf.workflow)",message="spec.workflow is fixed: create another Run"
	// +kubebuilder:validation:XValidation:rule="has(self.prompt) == has(oldSelf.prompt) && (!has(self.prompt) || self.prompt == oldSelf.prompt)",message="spec.prompt is fixed: create another Run"
	// +kubebuilder:validation:XValidation:rule="has(self.input) == has(oldSelf.input) && (!has(self.input) || self.input == oldSelf.input)",message="spec.input is fixed: create another Run"
	// +kubebuilder:validation:XValidation:rule="has(self.user) == has(oldSelf.user) && (!has(self.user) || self.user == oldSelf.user)",message="spec.user is fixed: create another Run"
	// +kubebuilder:validation:XValidation:rule="has(self.limits) == has(oldSelf.limits) && (!has(self.limits) || self.limits == oldSelf.limits)",message="spec.limits is fixed: create another Run"
	// +kubebuilder:validation:XValidation:rule="has(self.maxRetries) == has(oldSelf.maxRetries) && (!has(self.maxRetries) || self.maxRetries == oldSelf.maxRetries)",message="spec.maxRetries is fixed: create another Run"
	// +kubebuilder:validation:XValidation:rule="has(self.maxDisruptions) == has(oldSelf.maxDisruptions) && (!has(self.maxDisruptions) || self.maxDisruptions == oldSelf.maxDisruptions)",message="spec.maxDisruptions is fixed: create another Run"
	// +required
	Spec RunSpec `json:"spec"`

	// status is the state of the Run.
	// +kubebuilder:default={conditions:{{type:"Reconciling",status:"True",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"},{type:"Succeeded",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status RunStatus `json:"status,omitempty"`
}

// RunSpec is one piece of work. To try again, create another Run.
//
// +kubebuilder:validation:XValidation:rule="has(self.agent) != has(self.workflow)",message="name an agent or a workflow, one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.prompt) || has(self.input)",message="say what to do: write a prompt, or input as the Agent declares it"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || !has(self.prompt)",message="a workflow takes input and no prompt: write input as the Workflow declares it, and remove prompt"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || !has(self.limits) || !(has(self.limits.modelCalls) || has(self.limits.toolCalls) || has(self.limits.depth) || has(self.limits.wait) || has(self.limits.whenReached))",message="of a workflow steps, tokens, cost, duration, pending and deadline are limited: remove modelCalls, toolCalls, depth, wait and whenReached, or set them on the Agents"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || (!has(self.maxRetries) || self.maxRetries == 1) && (!has(self.maxDisruptions) || self.maxDisruptions == 10)",message="maxRetries and maxDisruptions are for agents: set maxRetries on the nodes of the Workflow"
type RunSpec struct {
	// agent names the Agent, in the same namespace, that does the work. While it
	// does not exist, or is not Ready, the Run waits with Succeeded=Unknown,
	// reason Pending, for limits.pending at most.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +optional
	Agent string `json:"agent,omitempty"`

	// workflow names the Workflow, in the same namespace, that does the work: in
	// child Runs, which carry the label deckhand.dev/workflow-run. While it does not
	// exist, or is not Ready, the Run waits with Succeeded=Unknown, reason Pending,
	// for limits.pending at most.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +optional
	Workflow string `json:"workflow,omitempty"`

	// prompt says what to do, at most 64 KiB. ${{ input.x }} is replaced by the value x of
	// input; $${{ is a literal ${{. It may be omitted if input says what to do. A task that
	// is too large for a pod ends the Run with reason TaskTooLarge before a pod is created.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="must be at most 64 KiB: put long material into files"
	// +kubebuilder:validation:XValidation:rule="self.matches('[^ \\t\\r\\n]')",message="must say what to do"
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// input gives the values that the Agent or the Workflow declares as its input: an
	// object of at most 16 KiB of JSON. Values that do not fit end the Run before it
	// starts, reason Misconfigured; the message has their path.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Input *runtime.RawExtension `json:"input,omitempty"`

	// user says for whom the Run is. Hooks and tools receive it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +optional
	User string `json:"user,omitempty"`

	// limits lower the Agent's limits, or the Workflow's, for this Run; where they
	// are higher those hold. Of a Workflow steps, tokens, cost, duration, pending and
	// deadline count.
	// +kubebuilder:validation:XValidation:rule="!has(self.whenReached)",message="whenReached is the Agent's to say: remove it"
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// maxRetries is how many failed attempts are retried before the Run fails.
	// Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +kubebuilder:default=1
	// +optional
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// maxDisruptions is how many attempts may be lost to infrastructure (eviction,
	// node loss, pod deletion) before the Run fails. Default 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +kubebuilder:default=10
	// +optional
	MaxDisruptions *int32 `json:"maxDisruptions,omitempty"`

	// desiredState is Running, Paused to hold the Run at its next safe point until
	// it is Running again (with durability: Volume its pod goes meanwhile; without,
	// it holds in its pod for limits.wait at most), or
	// Stopped to end it there. A stopped Run does not start again. Default Running.
	// +kubebuilder:validation:Enum=Running;Paused;Stopped
	// +kubebuilder:default=Running
	// +optional
	DesiredState DesiredState `json:"desiredState,omitempty"`

	// ttlSecondsAfterFinished deletes the Run that long after it finished.
	// Default: never. It is not honored on a Run that carries a label or
	// annotation of Flux or Argo CD: Git would make it again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// DesiredState is what a person wants of a Run.
type DesiredState string

// The states to be desired.
const (
	DesiredRunning DesiredState = "Running"
	DesiredPaused  DesiredState = "Paused"
	DesiredStopped DesiredState = "Stopped"
)

// RunStatus has two writers. The runner writes progress and the operator everything
// else; of a workflow Run the operator writes progress too. The conditions Succeeded and
// Finished of a finished Run never change.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || !has(self.progress) || !has(self.progress.recent) && !(has(self.progress.result) && (has(self.progress.result.text) || has(self.progress.result.files)))",message="a Run has nodes, or steps, text and files of its own"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completionTime) || (has(self.completionTime) && self.completionTime == oldSelf.completionTime)",message="a finished Run stays finished"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completionTime) || (has(self.conditions) && oldSelf.conditions.filter(c, c.type == 'Succeeded').all(o, self.conditions.exists(c, c.type == o.type && c.status == o.status && c.reason == o.reason)))",message="the outcome of a finished Run never changes"
type RunStatus struct {
	// observedGeneration is the generation of the spec that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// target is the Agent or Workflow that does the work.
	// +optional
	Target *RunTarget `json:"target,omitempty"`

	// conditions holds Succeeded, Finished, Reconciling and Stalled, and at most 4
	// conditions of other controllers, for example of a queue. The operator changes
	// only its own.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.filter(c, !(c.type in ['Succeeded', 'Finished', 'Reconciling', 'Stalled'])).size() <= 4",message="other controllers may set at most 4 conditions: the others are the operator's"
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(bytes(c.message)) <= (c.type == 'Succeeded' ? 1024 : 256))",message="the message of Succeeded has at most 1 KiB, those of other conditions 256 bytes"
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.reason) <= 64 && size(c.type) <= 64)",message="the type and the reason of a condition have at most 64 characters"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// attempt is the current attempt.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// failures is the number of attempts that failed. spec.maxRetries limits it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// disruptions is the number of attempts that were lost to the infrastructure, for
	// example to an eviction. spec.maxDisruptions limits it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Disruptions int32 `json:"disruptions,omitempty"`

	// startTime is when the first attempt started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Run finished, whether it succeeded or not.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// workflowRevision is the hash of the revision of the Workflow, with the Agents
	// that it names. It stays the same for the whole Run.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	WorkflowRevision string `json:"workflowRevision,omitempty"`

	// nodes is the state of each node of a workflow Run, in the order of the Workflow.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Nodes []NodeStatus `json:"nodes,omitempty"`

	// progress is what the runner reports. Of a workflow Run it is the sum of its child
	// Runs.
	// +optional
	Progress *RunProgress `json:"progress,omitempty"`

	// internal is what the operator remembers between two reconciliations. It is not
	// part of the API: its fields may change in any release.
	// +optional
	Internal RunInternal `json:"internal,omitzero"`
}

// RunTarget names the object that does the work of a Run.
type RunTarget struct {
	// kind is Agent or Workflow.
	// +kubebuilder:validation:Enum=Agent;Workflow
	// +required
	Kind TargetKind `json:"kind"`
	// name is the name of the Agent or Workflow.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`
}

// TargetKind is the kind of a RunTarget.
type TargetKind string

// The kinds of a RunTarget.
const (
	TargetAgent    TargetKind = "Agent"
	TargetWorkflow TargetKind = "Workflow"
)

// RunInternal is what the operator remembers between two reconciliations. It is
// not part of the API: its fields may change in any release.
type RunInternal struct {
	// pendingSince is when the current wait for something outside the Run began, for
	// example for a Secret. limits.pending counts from here.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
	// resumedAt is when the Run was last resumed or left the queue. limits.pending
	// does not count the time before.
	// +optional
	ResumedAt *metav1.Time `json:"resumedAt,omitempty"`
	// delegated are hashes of the delegation requests that a child Run was created
	// for, so that no request creates a second child Run after the first is deleted.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=6
	// +optional
	Delegated []string `json:"delegated,omitempty"`
}

// Attempt is one execution of a Run, in a pod of its own.
type Attempt struct {
	// number increases by one with each attempt. No number is used twice.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int32 `json:"number"`
	// pod is the name of the attempt's pod.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Pod string `json:"pod"`
	// podUID is the UID of the pod. It is empty until the pod was created.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	PodUID string `json:"podUID,omitempty"`
	// agentRevision is the hash of the revision of the Agent. It is the same for all
	// attempts.
	// +kubebuilder:validation:MaxLength=64
	// +required
	AgentRevision string `json:"agentRevision"`
	// volumeClaim is the name of the PersistentVolumeClaim that holds files and
	// journal. It is the same for all attempts, and empty with durability: Pod.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	VolumeClaim string `json:"volumeClaim,omitempty"`
	// startedAt is when the attempt started.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
}

// RunList is a list of Runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Run `json:"items"`
}
