package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Run is one piece of work, done once: an agent and a prompt.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=deckhand
// +kubebuilder:printcolumn:name="Target",type=string,JSONPath=`.status.target`
// +kubebuilder:printcolumn:name="Succeeded",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Succeeded")].reason`
// +kubebuilder:printcolumn:name="Steps",type=integer,JSONPath=`.status.progress.counts.steps`
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.status.progress.usage.totalTokens`
// +kubebuilder:printcolumn:name="Cost",type=string,JSONPath=`.status.progress.usage.cost`
// +kubebuilder:printcolumn:name="Attempt",type=integer,priority=1,JSONPath=`.status.attempt.number`
// +kubebuilder:printcolumn:name="Pod",type=string,priority=1,JSONPath=`.status.attempt.pod`
// +kubebuilder:printcolumn:name="Model",type=string,priority=1,JSONPath=`.status.progress.model`
// +kubebuilder:printcolumn:name="Duration",type=integer,priority=1,description="seconds that runners were alive",JSONPath=`.status.progress.usage.durationSeconds`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Succeeded")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 63",message="the name of a Run is at most 63 characters: it names pods and is a label"
type Run struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the work. But for desiredState and ttlSecondsAfterFinished it is
	// fixed.
	// +required
	Spec RunSpec `json:"spec"`

	// status is how far it came.
	// +kubebuilder:default={conditions:{{type:"Reconciling",status:"True",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"},{type:"Succeeded",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status RunStatus `json:"status,omitempty"`
}

// RunSpec is one piece of work. To try again, create another Run.
//
// +kubebuilder:validation:XValidation:rule="has(self.agent) != has(self.workflow)",message="name an agent or a workflow, one of the two"
// +kubebuilder:validation:XValidation:rule="has(self.prompt) || has(self.parameters)",message="say what to do: write a prompt, or parameters as the Agent's input.schema has them"
// +kubebuilder:validation:XValidation:rule="has(self.agent) == has(oldSelf.agent) && (!has(self.agent) || self.agent == oldSelf.agent) && has(self.workflow) == has(oldSelf.workflow) && (!has(self.workflow) || self.workflow == oldSelf.workflow) && has(self.prompt) == has(oldSelf.prompt) && (!has(self.prompt) || self.prompt == oldSelf.prompt) && has(self.parameters) == has(oldSelf.parameters) && (!has(self.parameters) || self.parameters == oldSelf.parameters) && has(self.user) == has(oldSelf.user) && (!has(self.user) || self.user == oldSelf.user) && has(self.limits) == has(oldSelf.limits) && (!has(self.limits) || self.limits == oldSelf.limits) && has(self.retries) == has(oldSelf.retries) && (!has(self.retries) || self.retries == oldSelf.retries) && has(self.disruptions) == has(oldSelf.disruptions) && (!has(self.disruptions) || self.disruptions == oldSelf.disruptions)",message="the work of a Run is fixed: only desiredState and ttlSecondsAfterFinished may change; to do other work create another Run"
type RunSpec struct {
	// agent names the Agent, in the same namespace, that does the work. While it
	// does not exist, or is not Ready, the Run waits with Succeeded=Unknown,
	// reason Pending, for limits.pending at most.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +optional
	Agent string `json:"agent,omitempty"`

	// workflow names the Workflow, in the same namespace, that does the work.
	// This release runs agents only: such a Run ends with reason Misconfigured.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="must be the name of an object: lower-case letters, digits, - and ."
	// +optional
	Workflow string `json:"workflow,omitempty"`

	// prompt is what is to be done, at most 64 KiB. ${{ input.x }} stands for the
	// value x of parameters; $${{ is a literal ${{. It may be left out where
	// parameters say it. A task that is too large for a pod ends the Run with
	// reason TaskTooLarge before one exists.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=65536
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 65536",message="must be at most 64 KiB: put long material into files"
	// +kubebuilder:validation:XValidation:rule="self.matches('[^ \\t\\r\\n]')",message="must say what to do"
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// parameters are the values of the Agent's input, an object of at most 16 KiB
	// of JSON. Values that do not fit input.schema end the Run before it starts,
	// reason Misconfigured, with their path.
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Parameters *runtime.RawExtension `json:"parameters,omitempty"`

	// user says who the Run is for. Hooks and tools are told.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +optional
	User string `json:"user,omitempty"`

	// limits lower the Agent's limits for this Run; where they are higher the
	// Agent's hold.
	// +kubebuilder:validation:XValidation:rule="!has(self.whenReached)",message="whenReached is the Agent's to say: remove it"
	// +optional
	Limits *Limits `json:"limits,omitempty"`

	// retries is how often the work may fail and be tried again. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +kubebuilder:default=1
	// +optional
	Retries *int32 `json:"retries,omitempty"`

	// disruptions is how often the ground may fail under the work (an eviction,
	// a lost node, a deleted pod) and it be taken up again. Default 10.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +kubebuilder:default=10
	// +optional
	Disruptions *int32 `json:"disruptions,omitempty"`

	// desiredState is Running, or Stopped to end the Run at its next safe point.
	// A stopped Run does not start again. Default Running.
	// +kubebuilder:validation:Enum=Running;Stopped
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
	DesiredStopped DesiredState = "Stopped"
)

// RunStatus has two writers: progress is written by the runner, everything
// else by the operator. A finished Run's outcome never changes.
//
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completionTime) || (has(self.completionTime) && self.completionTime == oldSelf.completionTime)",message="a finished Run stays finished"
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.completionTime) || (has(self.conditions) && oldSelf.conditions.filter(c, c.type == 'Succeeded').all(o, self.conditions.exists(c, c.type == o.type && c.status == o.status && c.reason == o.reason)))",message="the outcome of a finished Run never changes"
type RunStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// target is what does the work: fixer, or workflow/release.
	// +kubebuilder:validation:MaxLength=264
	// +optional
	Target string `json:"target,omitempty"`

	// conditions holds Succeeded, Finished, Reconciling and Stalled.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:XValidation:rule="self.map(c, size(bytes(c.message))).sum() <= 1152",message="the conditions of a Run have messages of 1 KiB, all together"
	// +kubebuilder:validation:XValidation:rule="self.all(c, size(c.reason) <= 64 && size(c.type) <= 32)",message="a condition's type and reason are words"
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// attempt is the current attempt.
	// +optional
	Attempt *Attempt `json:"attempt,omitempty"`

	// failures counts attempts that the work itself ended, against spec.retries.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Failures int32 `json:"failures,omitempty"`

	// disruptions counts attempts that the ground ended, against
	// spec.disruptions.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Disruptions int32 `json:"disruptions,omitempty"`

	// startTime is when the first attempt was claimed.
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when the Run became final, either way.
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// progress is what the runner tells.
	// +optional
	Progress *RunProgress `json:"progress,omitempty"`
}

// Attempt is one pod's try at the work.
type Attempt struct {
	// number rises by one with each attempt; none is used twice.
	// +kubebuilder:validation:Minimum=1
	// +required
	Number int32 `json:"number"`
	// pod is the name of the attempt's pod.
	// +kubebuilder:validation:MaxLength=63
	// +required
	Pod string `json:"pod"`
	// podUID is the pod's UID. Without it the attempt has had no effect.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	PodUID string `json:"podUID,omitempty"`
	// agent is the hash of the Agent's version, the same for all attempts.
	// +kubebuilder:validation:MaxLength=64
	// +required
	Agent string `json:"agent"`
	// startedAt is when the attempt was claimed.
	// +required
	StartedAt metav1.Time `json:"startedAt"`
	// pendingSince is since when the Run waits for something outside it, a Secret
	// for one; limits.pending counts from here. It is startedAt unless the
	// attempt before this one already waited.
	// +optional
	PendingSince *metav1.Time `json:"pendingSince,omitempty"`
}

// RunProgress is what the runner tells of itself, within bounds: the last
// steps, exact counts, and in the end a committed result. The transcript is in
// the pod's log.
type RunProgress struct {
	// version is that of the contract between operator and runner.
	// +optional
	Version int32 `json:"version,omitempty"`
	// attempt is the number of the attempt that wrote this.
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// sequence grows with each report: milliseconds of the runner's clock.
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// effects is Begun from before the first call that may change something.
	// +kubebuilder:validation:Enum=Begun
	// +optional
	Effects Effects `json:"effects,omitempty"`
	// state is what the Run waits for, as a reason of Succeeded=Unknown; empty
	// while it works.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	State string `json:"state,omitempty"`
	// model is the name of the Model that answered last.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Model string `json:"model,omitempty"`
	// step is the step under way.
	// +optional
	Step *CurrentStep `json:"step,omitempty"`
	// counts are exact over all attempts.
	// +optional
	Counts Counts `json:"counts,omitempty"`
	// usage is what the Run used over all attempts.
	// +optional
	Usage Usage `json:"usage,omitempty"`
	// recent are the last steps, at most 20, oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Recent []RecentStep `json:"recent,omitempty"`
	// pending is what people are asked, at most 10, oldest first. A Decision named
	// <run>.<id> answers one.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Pending []PendingRequest `json:"pending,omitempty"`
	// decided are the last Decisions that the runner acted on, at most 20, oldest
	// first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Decided []DecidedRequest `json:"decided,omitempty"`
	// result is how the attempt ended.
	// +optional
	Result *Result `json:"result,omitempty"`
}

// Effects says whether anything may have been changed.
type Effects string

// EffectsBegun means that something may have been changed.
const EffectsBegun Effects = "Begun"

// CurrentStep is the step under way.
type CurrentStep struct {
	// number of the step, from 1.
	// +optional
	Number int64 `json:"number,omitempty"`
	// kind is Model or Tool.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Kind string `json:"kind,omitempty"`
	// name of the Model or tool.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Name string `json:"name,omitempty"`
	// startedAt is when the step began.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
}

// Counts are exact, however long the Run.
type Counts struct {
	// steps is the number of turns of the model.
	// +optional
	Steps int64 `json:"steps,omitempty"`
	// modelCalls is the number of requests to models, retries included.
	// +optional
	ModelCalls int64 `json:"modelCalls,omitempty"`
	// toolCalls is the number of executed tool calls.
	// +optional
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// errors is the number of model calls and tool calls that failed.
	// +optional
	Errors int64 `json:"errors,omitempty"`
}

// Usage is what the Run used.
type Usage struct {
	// inputTokens is all input, cache included.
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// cacheReadTokens is the part of the input read from a prompt cache.
	// +optional
	CacheReadTokens int64 `json:"cacheReadTokens,omitempty"`
	// cacheWriteTokens is the part of the input written to a prompt cache.
	// +optional
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	// outputTokens is all output, reasoning included.
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// reasoningTokens is the part of the output spent on reasoning.
	// +optional
	ReasoningTokens int64 `json:"reasoningTokens,omitempty"`
	// totalTokens is what limits.tokens counts: input not read from a cache plus
	// output.
	// +optional
	TotalTokens int64 `json:"totalTokens,omitempty"`
	// cost is the price of it all; empty where a price is not known.
	// +kubebuilder:validation:MaxLength=24
	// +optional
	Cost string `json:"cost,omitempty"`
	// costMicroUSD is the same in millionths of a US dollar.
	// +optional
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
	// durationSeconds is how long runners were alive.
	// +optional
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
}

// RecentStep is one of the last steps, in a line.
type RecentStep struct {
	// step is its number.
	// +optional
	Step int64 `json:"step,omitempty"`
	// kind is Model or Tool.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Kind string `json:"kind,omitempty"`
	// name of the Model or tool.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Name string `json:"name,omitempty"`
	// summary says in a line what was said or done.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 200",message="must be at most 200 bytes"
	// +optional
	Summary string `json:"summary,omitempty"`
	// durationMs is how long it took, in milliseconds.
	// +optional
	DurationMs int64 `json:"durationMs,omitempty"`
}

// PendingRequest is what a person is asked.
type PendingRequest struct {
	// id names the request; a Decision says it in spec.request.
	// +kubebuilder:validation:MaxLength=80
	// +optional
	ID string `json:"id,omitempty"`
	// kind is Question or Limit.
	// +kubebuilder:validation:MaxLength=16
	// +optional
	Kind string `json:"kind,omitempty"`
	// agent is who asks, where it is not the Run's own.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Agent string `json:"agent,omitempty"`
	// question is what is asked, at most 1 KiB.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Question string `json:"question,omitempty"`
	// askedAt is since when it waits.
	// +optional
	AskedAt *metav1.Time `json:"askedAt,omitempty"`
	// expiresAt is until when it waits.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// DecidedRequest is a Decision that the runner acted on.
type DecidedRequest struct {
	// name is that of the Decision.
	// +kubebuilder:validation:MaxLength=144
	// +optional
	Name string `json:"name,omitempty"`
	// request is what it answered.
	// +kubebuilder:validation:MaxLength=80
	// +optional
	Request string `json:"request,omitempty"`
	// refused says why the runner could not act on it; empty when it did.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Refused string `json:"refused,omitempty"`
}

// Result is how an attempt ended. It counts only when it is committed; an exit
// code alone never means success.
type Result struct {
	// committed is true once the runner stands by this result.
	// +optional
	Committed bool `json:"committed,omitempty"`
	// reason is a reason of the condition Succeeded.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says what happened and what to do next.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Message string `json:"message,omitempty"`
	// text is the agent's last word, at most 8 KiB.
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 8192",message="must be at most 8 KiB"
	// +optional
	Text string `json:"text,omitempty"`
	// output is the agent's answer as JSON, valid against output.schema, at most
	// 16 KiB.
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 16384",message="must be at most 16 KiB"
	// +optional
	Output string `json:"output,omitempty"`
	// files are what the tools made or changed in the workspace, at most 20.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Files []File `json:"files,omitempty"`
}

// File is a file that the Run made or changed.
type File struct {
	// path as the agent sees it: /workspace/notes/a.txt.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 256",message="must be at most 256 bytes"
	// +optional
	Path string `json:"path,omitempty"`
	// size in bytes.
	// +optional
	Size int64 `json:"size,omitempty"`
}

// RunList is a list of Runs.
//
// +kubebuilder:object:root=true
type RunList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Run `json:"items"`
}
