package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Run is one execution of an Agent with a prompt, or of a Workflow with its input. Like a Job,
// it runs once: the operator starts a pod for each attempt, and the condition Succeeded shows
// how it ended. To do the work again, create another Run.
//
// Example:
//
//	apiVersion: deckhand.dev/v1alpha1
//	kind: Run
//	metadata: {name: review-readme}
//	spec:
//	  agent: reviewer
//	  prompt: Review the README.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=deckhand
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.spec['agent','workflow']`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Steps",type=integer,JSONPath=`.status.progress.counts.steps`
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.status.progress.usage.totalTokens`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.progress.usage.cost`
// +kubebuilder:printcolumn:name="Errors",type=integer,priority=1,description="model calls and tool calls that failed",JSONPath=`.status.progress.counts.errors`
// +kubebuilder:printcolumn:name="Target-Kind",type=string,priority=1,description="whether the target is an Agent or a Workflow",JSONPath=`.status.target.kind`
// +kubebuilder:printcolumn:name="Workflow-Node",type=string,priority=1,description="the node of the workflow that the Run belongs to",JSONPath=`.metadata.labels['deckhand\.dev/workflow-node']`
// +kubebuilder:printcolumn:name="Attempt",type=integer,priority=1,JSONPath=`.status.attempt.number`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.attempt.pod`
// +kubebuilder:printcolumn:name="Model",type=string,priority=1,JSONPath=`.status.progress.model`
// +kubebuilder:printcolumn:name="Duration",type=string,priority=1,description="how long runners were alive",JSONPath=`.status.progress.usage.duration`
// +kubebuilder:printcolumn:name="Started",type=string,priority=1,description="when the first attempt started",JSONPath=`.status.startTime`
// +kubebuilder:printcolumn:name="Completed",type=string,priority=1,description="when the Run finished",JSONPath=`.status.completionTime`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63 && !self.metadata.name.contains('.')",message="metadata.name must have at most 63 lower-case letters, digits and -, because the names of pods and Decisions begin with it"
// +kubebuilder:validation:XValidation:rule="!has(self.spec.continueFrom) || self.spec.continueFrom.run != self.metadata.name",message="spec.continueFrom.run is the Run itself: name the Run to continue"
type Run struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the work to do. Exactly one of agent and workflow is required. Only desiredState
	// and ttlSecondsAfterFinished can be changed; to change anything else, create another Run.
	// +required
	Spec RunSpec `json:"spec"`

	// status is the observed state of the Run. The runner writes progress, and the operator
	// everything else; for a workflow Run the operator writes progress too.
	// +kubebuilder:default={conditions:{{type:"Reconciling",status:"True",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"},{type:"Succeeded",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status RunStatus `json:"status,omitempty"`
}

// RunSpec is the work of a Run.
//
// +kubebuilder:validation:XValidation:rule="has(self.agent) != has(self.workflow)",messageExpression="'exactly one of agent and workflow is required: ' + (has(self.agent) ? 'remove one of the two' : 'write agent: reviewer')"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.prompt) || has(self.input) || has(self.continueFrom)",message="prompt or input is required for an agent: write prompt, or input as the Agent declares it"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || !has(self.prompt)",message="prompt is not allowed for a workflow: remove prompt, and write input as the Workflow declares it"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || !has(self.limits) || !(has(self.limits.modelCalls) || has(self.limits.toolCalls) || has(self.limits.depth) || has(self.limits.wait) || has(self.limits.modelOutage))",message="limits.modelCalls, toolCalls, depth, wait and modelOutage are not allowed for a workflow: remove them, or set them in the Agents"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || (!has(self.maxRetries) || self.maxRetries == 1) && (!has(self.maxDisruptions) || self.maxDisruptions == 10)",message="maxRetries and maxDisruptions are not allowed for a workflow: set maxRetries of the nodes of the Workflow"
// +kubebuilder:validation:XValidation:rule="!has(self.workflow) || !has(self.images)",message="images is not allowed for a workflow: remove images"
// +kubebuilder:validation:XValidation:rule="!has(self.continueFrom) || (has(self.workflow) ? !has(self.continueFrom.step) && self.continueFrom.?workspace.orValue('Copy') == 'Copy' : !has(self.continueFrom.node))",message="continueFrom.node is only for a workflow, and step and workspace: Share or Fresh are only for an agent: remove the others"
type RunSpec struct {
	// agent is the name of the Agent, in the same namespace, that does the work. While it does
	// not exist or is not Ready, the Run waits with Succeeded=Unknown, reason Pending, for at
	// most limits.pending.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +optional
	Agent string `json:"agent,omitempty"`

	// workflow is the name of the Workflow, in the same namespace, that does the work. Its
	// nodes run as child Runs with the label deckhand.dev/workflow-run. While the Workflow does
	// not exist or is not Ready, the Run waits with Succeeded=Unknown, reason Pending, for at
	// most limits.pending.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +optional
	Workflow string `json:"workflow,omitempty"`

	// prompt is the first user message to the model, at most 64 KiB. An agent needs prompt,
	// input or both; a workflow has no prompt. ${{ }} is an expression in CEL that reads input,
	// as in ${{ input.x }}; for a value that may be absent write
	// ${{ input.?x.orValue('none') }}. $${{ is a literal ${{. An expression that does not
	// compile, or that fails, ends the Run, reason Misconfigured. Prompt and input share a pod
	// annotation of 48 KiB: if they do not fit, the Run ends with reason TaskTooLarge before a
	// pod is created.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="must be at most 64 KiB: move long texts into files of the workspace"
	// +kubebuilder:validation:XValidation:rule="self.matches('[^ \\t\\r\\n]')",message="must not be blank: write a prompt, or remove prompt"
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// images are files of the workspace that the model is shown with the prompt, at most 20: PNG,
	// JPEG, GIF, WebP or PDF of at most 3.75 MiB and 40 million pixels each, and 12 MiB in all. The
	// paths are below /workspace, for example docs/chart.png. If a file is missing or cannot be shown,
	// or they have more than 12 MiB, or the policy of the Agent does not let it Read the file, the Run
	// ends before the model is asked, with reason Misconfigured and the path in the message. A provider
	// may take less: Azure 10 files, Anthropic 8,000 pixels in width and height, and some models no
	// images. The model then reads a line for each file that is not sent, and an event of the log and
	// status.progress.result.warning say how many. Default: none. Not for workflows.
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=255
	// +kubebuilder:validation:items:XValidation:rule="!self.startsWith('/') && !self.endsWith('/') && !self.matches('(^|/)[.]?[.]?(/|$)|[\\x00-\\x1f\\x7f]')",message="must be a file below /workspace: write docs/chart.png"
	// +optional
	Images []string `json:"images,omitempty"`

	// input has the values that spec.input of the Agent or Workflow declares: a JSON object of
	// at most 16 KiB. If a value does not match the declaration, the Run ends before it starts
	// with reason Misconfigured, and the message has the path of the value.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Input *runtime.RawExtension `json:"input,omitempty"`

	// continueFrom makes the Run continue the work of another Run in the same namespace that has
	// finished. An agent continues a Run of an Agent: the model reads its conversation, and then
	// prompt. A workflow retries a Run of the same Workflow, with the same input: nodes that
	// succeeded with the same prompt, input and Agent are not done again. While that Run is active, this Run
	// waits with Succeeded=Unknown, reason Queued. If its conversation or its files cannot be read,
	// this Run ends with reason NothingToContinue; it never starts from the beginning instead. Usage
	// and limits start from zero. Approvals are asked again, but for those of nodes of a workflow
	// that ask the same as before, after nodes that were not done again. Only users who may get
	// runs/session of that Run can create this one. Default: none. Not for Schedules.
	// +optional
	ContinueFrom *ContinueFrom `json:"continueFrom,omitempty"`

	// user is the name of the user on whose behalf the agent works, at most 253 bytes. Hooks,
	// policies (run.user), custom tools and reports of cost go by it. An admission policy refuses
	// another name than that of the user who creates the Run, or who changes the Schedule, unless
	// they may set runs/user. Default: empty.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +optional
	User string `json:"user,omitempty"`

	// limits lower the limits of the Agent or Workflow for this Run. A value that is higher
	// than theirs ends the Run with reason Misconfigured, and the message has both. A limit that
	// is not set here stays as they set it. For a workflow only steps, tokens, cost, duration,
	// pending and deadline are allowed.
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// maxRetries is how many failed attempts are retried, 0 to 20. One more failed attempt ends
	// the Run with the reason of that attempt, and the message has the number of attempts.
	// Failures that another attempt cannot change, for example a reached limit, are not
	// retried. Default 1, which spec does not show. For a workflow set maxRetries of its nodes
	// instead.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	MaxRetries *int32 `json:"maxRetries,omitempty"`

	// maxDisruptions is how many attempts may be lost to infrastructure (eviction, node loss,
	// pod deletion), 0 to 20. One more lost attempt ends the Run with reason PodLost, and
	// the message has the number of attempts. Default 10, which spec does not show. Not for
	// workflows.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	MaxDisruptions *int32 `json:"maxDisruptions,omitempty"`

	// desiredState is Running, Paused or Stopped. Paused and Stopped take effect at the next
	// safe point, when the running calls have finished. Paused holds the Run until it is
	// Running again: with workspace.durability Volume its pod ends, with Pod it stays, for at
	// most limits.wait. Stopped ends the Run with reason Stopped; it cannot be started again.
	// Default Running.
	// +kubebuilder:validation:Enum=Running;Paused;Stopped
	// +kubebuilder:default=Running
	// +optional
	DesiredState DesiredState `json:"desiredState,omitempty"`

	// ttlSecondsAfterFinished is after how many seconds a finished Run is deleted. Default:
	// runDefaults.ttl of the chart, which is 7 days and which spec does not show; never, if
	// another object controls the Run, for example a Schedule. To keep a Run, write 2147483647
	// (68 years). It is ignored if the Run has a label or annotation of Flux or Argo CD,
	// because these tools would create it again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TTLSecondsAfterFinished *int32 `json:"ttlSecondsAfterFinished,omitempty"`
}

// ContinueFrom is a finished Run whose work another Run continues.
type ContinueFrom struct {
	// run is the name of the Run to continue. Agent and Models may be others; if spec.user is not
	// that of that Run, this Run ends with reason Misconfigured. While that Run does not exist, this
	// Run waits with Succeeded=Unknown, reason Pending, for at most limits.pending. That Run must have
	// kept its files: workspace.durability of its Agent is Volume, and its PersistentVolumeClaim
	// still exists. A Run can continue at most 20 Runs, one after the other.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a Run: lower-case letters, digits and -"
	// +required
	Run string `json:"run"`
	// uid is the UID of that Run, from its metadata. If the Run with the name has another UID when
	// this Run would start, because that Run was deleted and created again, this Run ends with
	// reason NothingToContinue. Default: the Run that has the name when this Run starts.
	// +kubebuilder:validation:MaxLength=36
	// +kubebuilder:validation:XValidation:rule="self.matches('^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$')",message="must be the UID of a Run, as kubectl get run NAME -o jsonpath='{.metadata.uid}' prints it"
	// +optional
	UID string `json:"uid,omitempty"`
	// step is the number of the last step to keep, as in ids of calls (s14c1 is a call of step 14),
	// 1 to 1000000. Steps up to it do not run again. Calls after it, and calls of it whose result is
	// a later step, are made again, even if they changed something. Files stay as that Run left
	// them at its end. If that Run has no such step, this Run ends with reason NothingToContinue.
	// Default: the last step; then prompt is required if that Run ended with reason Finished or
	// Rejected, and this Run ends with reason Misconfigured without it.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Step *int64 `json:"step,omitempty"`
	// node is the name of a node of the Workflow that runs again, with all nodes that wait for it.
	// Only for a workflow. If the Workflow has no such node, the Run ends with reason Misconfigured.
	// Default: the nodes that did not succeed; if that Run succeeded, this Run ends with reason
	// NothingToContinue.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=40
	// +optional
	Node string `json:"node,omitempty"`
	// workspace is which files the agent has. Copy: a copy of the files of that Run, made before the
	// agent starts. Share: the files of that Run themselves, on its PersistentVolumeClaim, which is
	// kept until the retention of the last of its Runs; while another Run uses it, this Run waits
	// with reason Queued, and if it is deleted, this Run ends with reason NothingToContinue. Fresh:
	// the files that the Agent starts with; the model reads a line that says so. Default Copy.
	// +kubebuilder:validation:Enum=Copy;Share;Fresh
	// +kubebuilder:default=Copy
	// +optional
	Workspace ContinueWorkspace `json:"workspace,omitempty"`
}

// MaxContinued is the most Runs that a Run can continue, one after the other.
const MaxContinued = 20

// ContinueWorkspace is which files a Run has that continues another.
type ContinueWorkspace string

// The files of a Run that continues another.
const (
	ContinueCopy  ContinueWorkspace = "Copy"
	ContinueShare ContinueWorkspace = "Share"
	ContinueFresh ContinueWorkspace = "Fresh"
)

// DesiredState is what a person wants of a Run.
type DesiredState string

// The states to be desired.
const (
	DesiredRunning DesiredState = "Running"
	DesiredPaused  DesiredState = "Paused"
	DesiredStopped DesiredState = "Stopped"
)

// RunStatus is the observed state of a Run. The conditions Succeeded and Finished of a finished
// Run never change.
//
// +kubebuilder:validation:XValidation:rule="!has(self.nodes) || !has(self.progress) || !has(self.progress.recent) && !has(self.progress.refused) && !(has(self.progress.result) && (has(self.progress.result.text) || has(self.progress.result.files)))",message="nodes is not allowed together with progress.recent, progress.refused, progress.result.text and progress.result.files"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completionTime) || has(self.completionTime)",message="completionTime cannot be removed"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completionTime) || (has(self.conditions) && oldSelf.conditions.filter(c, c.type == 'Succeeded').all(o, self.conditions.exists(c, c.type == o.type && c.status == o.status && c.reason == o.reason)))",message="the condition Succeeded of a finished Run cannot be changed"
type RunStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// target is the Agent or Workflow that does the work.
	// +structType=atomic
	// +optional
	Target *RunTarget `json:"target,omitempty"`

	// conditions has Succeeded, Finished, Reconciling and Stalled. Succeeded is Unknown while
	// the Run is active, and then True or False, which is final. Its reason and message say
	// what the Run does or waits for, or how it ended. Finished is True when the Run has ended
	// in any way. Other controllers may add up to 4 conditions.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.size() <= 4 || self.filter(c, !(c.type in ['Succeeded', 'Finished', 'Reconciling', 'Stalled'])).size() <= 4",message="other controllers may add at most 4 conditions to those of the operator"
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(bytes(c.message)) <= 256 || c.type == 'Succeeded' && size(bytes(c.message)) <= 1024)",message="the message of Succeeded must have at most 1 KiB, and the messages of other conditions at most 256 bytes"
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.reason) <= 64 && size(c.type) <= 64)",message="the type and the reason of a condition must have at most 64 characters"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// attempt is the current or last attempt. A workflow Run has none, and the first may be absent for
	// two seconds after its pod was created.
	// +structType=atomic
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// failures is the number of failed attempts that another attempt followed. spec.maxRetries
	// bounds it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// disruptions is the number of attempts that were lost to infrastructure, for example to an
	// eviction, and that another attempt followed. spec.maxDisruptions bounds it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Disruptions int32 `json:"disruptions,omitempty"`

	// startTime is when the first attempt started.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Run finished, whether it succeeded or not.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="completionTime cannot be changed"
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// continuedFrom is what the Run continues. It is absent until the first attempt starts.
	// +structType=atomic
	// +optional
	ContinuedFrom *ContinuedFrom `json:"continuedFrom,omitempty"`

	// workflowRevision is the hash of the stored revision of the Workflow and of the Agents
	// that it names. The Run keeps it to its end.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	WorkflowRevision string `json:"workflowRevision,omitempty"`

	// nodes has the state of each node of a workflow Run, in the order of the Workflow.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Nodes []NodeStatus `json:"nodes,omitempty"`

	// progress is what the runner reports: steps, usage, pending requests and the result. For a
	// workflow Run it is the sum over its child Runs, written when a node changes its state.
	// +structType=atomic
	// +optional
	Progress *RunProgress `json:"progress,omitempty"`

	// internal is data that the operator keeps between reconciliations. It is not part of the
	// API: its fields may change in any release.
	// +structType=atomic
	// +optional
	Internal RunInternal `json:"internal,omitzero"`
}

// RunTarget is a reference to the object that does the work of a Run.
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

// RunInternal is data that the operator keeps between reconciliations. It is not part of the
// API: its fields may change in any release.
type RunInternal struct {
	// pendingSince is when the current wait for something outside the Run began, for example
	// for a Secret. limits.pending counts from here.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
	// resumedAt is when the Run was last resumed or left the queue. limits.pending
	// does not count the time before.
	// +optional
	ResumedAt *metav1.Time `json:"resumedAt,omitempty"`
	// delegated has a hash of each delegation request for which a child Run was created. A
	// deleted child Run is not created again.
	// +listType=set
	// +kubebuilder:validation:MaxItems=100
	// +kubebuilder:validation:items:MaxLength=6
	// +optional
	Delegated []string `json:"delegated,omitempty"`
}

// Attempt is one execution of a Run, in its own pod.
type Attempt struct {
	// number is 1 for the first attempt and increases by one. No number whose pod was recorded is
	// used twice.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int32 `json:"number"`
	// pod is the name of the attempt's pod.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f]*$`
	// +required
	Pod string `json:"pod"`
	// podUID is the UID of the pod. It is empty until the pod is created.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	PodUID string `json:"podUID,omitempty"`
	// agentRevision is the hash of the stored revision of the Agent. All attempts use the same
	// revision.
	// +kubebuilder:validation:MaxLength=64
	// +required
	AgentRevision string `json:"agentRevision"`
	// volumeClaim is the name of the PersistentVolumeClaim with the files and the journal. All
	// attempts use the same one. It is empty with workspace.durability Pod.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	VolumeClaim string `json:"volumeClaim,omitempty"`
	// startedAt is when the attempt started.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
}

// ContinuedFrom is the chain of Runs that a Run continues, as found when it started, and what they
// used. The usage of the Run itself is in progress.usage.
type ContinuedFrom struct {
	// runs are the names of the Runs, that of spec.continueFrom first, then the Run that it
	// continued, and so on.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=63
	// +required
	Runs []string `json:"runs"`
	// uid is the UID of the first of runs.
	// +kubebuilder:validation:MaxLength=36
	// +required
	UID string `json:"uid"`
	// volumeClaim is the name of the PersistentVolumeClaim with its conversation and its files.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	VolumeClaim string `json:"volumeClaim,omitempty"`
	// totalTokens is the sum of the tokens that the Runs used.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalTokens int64 `json:"totalTokens,omitempty"`
	// cost is the sum of what the Runs cost, for example 1.23USD. It is absent if a Model without
	// prices was used.
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Cost string `json:"cost,omitempty"`
	// costMicroUSD is the cost in millionths of a US dollar.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
}

// RunList is a list of Runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Run `json:"items"`
}
