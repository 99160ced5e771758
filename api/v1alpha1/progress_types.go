package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunProgress is what the runner reports. Its size is bounded: the complete transcript is in
// the log of the pod.
//
// +kubebuilder:validation:XValidation:rule="!has(self.pending) || size(self.pending) == 0 || !has(self.result) || !(has(self.result.text) || has(self.result.files))",message="result.text and result.files are not allowed while pending has requests"
// +kubebuilder:validation:XValidation:rule="!has(self.modelWait) || !has(self.result) || !has(self.result.output)",message="modelWait is not allowed beside result.output: a Run that has an output waits for no model"
type RunProgress struct {
	// version is the version of the protocol between operator and runner. If the version of the
	// runner is newer than that of the operator, the Run ends with reason Misconfigured.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Version int32 `json:"version,omitempty"`
	// attempt is the number of the attempt that wrote this report.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// podUID is the UID of the pod that wrote this report. Until attempt is recorded in the
	// status, it shows which pod the report is from. It is empty if an older runner reports.
	// +kubebuilder:validation:MaxLength=36
	// +optional
	PodUID string `json:"podUID,omitempty"`
	// sequence increases with each report. It is a time in milliseconds since 1970.
	// +kubebuilder:validation:Maximum=99999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// effects is Begun from the first tool call that may change something. Then a Run with
	// workspace.durability Pod does not start again after a lost pod.
	// +kubebuilder:validation:Enum=Begun
	// +optional
	Effects Effects `json:"effects,omitempty"`
	// state is what the Run waits for, as a reason of Succeeded=Unknown. It is empty while the
	// agent works. RateLimited is what older runners report in place of WaitingForModel.
	// +kubebuilder:validation:Enum=WaitingForModel;RateLimited;AwaitingAnswer;AwaitingApproval;AwaitingChild;Paused
	// +optional
	State string `json:"state,omitempty"`
	// modelWait is the wait for a model that is unavailable. It is absent while no model is
	// waited for.
	// +optional
	ModelWait *ModelWait `json:"modelWait,omitempty"`
	// model is the name of the Model that answered last: a fallback while the Model of the
	// Agent is unavailable.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f]*$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +optional
	Model string `json:"model,omitempty"`
	// answeredAt is when that Model answered last. It is absent until it has answered this
	// attempt, and if an older runner reports.
	// +optional
	AnsweredAt *metav1.Time `json:"answeredAt,omitempty"`
	// step is the current step.
	// +optional
	Step *CurrentStep `json:"step,omitempty"`
	// counts are the numbers of steps, calls and errors of all attempts.
	// +optional
	Counts Counts `json:"counts,omitempty"`
	// usage is the tokens, cost and time of all attempts.
	// +optional
	Usage Usage `json:"usage,omitempty"`
	// recent has the last 20 steps, oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Recent []RecentStep `json:"recent,omitempty"`
	// pending has the requests that the Run waits for, oldest first. At most 8 requests, with 6
	// KiB of questions, arguments, schemas and approvers in total, are shown at a time; the next
	// ones follow when these are decided. Each displayDigest counts as 80 bytes, and each users
	// as 16. To decide a request, create a Decision named <run>.<id>.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.map(p, (has(p.question) ? size(bytes(p.question)) : 0) + (has(p.args) ? size(bytes(p.args)) : 0) + (has(p.schema) ? size(bytes(p.schema)) : 0) + (has(p.approvers) && has(p.approvers.groups) ? p.approvers.groups.map(g, size(bytes(g))).sum() : 0) + (has(p.approvers) && has(p.approvers.users) ? 16 + p.approvers.users.map(u, size(bytes(u))).sum() : 0) + (has(p.displayDigest) ? 80 : 0)).sum() <= 6144",message="questions, arguments, schemas and approvers must have at most 6 KiB in total, where each displayDigest counts as 80 bytes and each users as 16"
	// +optional
	Pending []PendingRequest `json:"pending,omitempty"`
	// decided has the last 20 Decisions that the Run acted on or refused, oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Decided []DecidedRequest `json:"decided,omitempty"`
	// confinement shows which restrictions of the agent's commands work. They are tested when
	// the sandbox starts.
	// +optional
	Confinement *Confinement `json:"confinement,omitempty"`
	// refused is what commands in the sandbox tried to reach and were refused.
	// +optional
	Refused *Refused `json:"refused,omitempty"`
	// result is how the attempt ended.
	// +optional
	Result *Result `json:"result,omitempty"`
}

// ModelWait is a wait for a model that is unavailable.
type ModelWait struct {
	// model is the name of the Model that was asked last.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +required
	Model string `json:"model"`
	// since is when the first request failed.
	// +required
	Since metav1.Time `json:"since"`
	// nextTryAt is when the model is asked again. If it is absent, the wait was given up, and the
	// Run ends with reason ModelUnavailable.
	// +optional
	NextTryAt *metav1.Time `json:"nextTryAt,omitempty"`
	// promised is true if the provider named the time of the next try.
	// +optional
	Promised bool `json:"promised,omitempty"`
	// message is the last error of the model's provider.
	// +kubebuilder:validation:MaxLength=216
	// +kubebuilder:validation:Pattern=`^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 216",message="must be at most 216 bytes"
	// +optional
	Message string `json:"message,omitempty"`
}

// Effects is whether the Run may have changed something.
type Effects string

// StateRateLimited is what older runners report as progress.state in place of WaitingForModel.
const StateRateLimited = "RateLimited"

// EffectsBegun means that the Run may have changed something.
const EffectsBegun Effects = "Begun"

// StepID is the id of a turn of the model, such as s14, or of a tool call in it, such as s14c1. The log
// and the names of Decisions have the same ids. The number counts the messages of the session, so
// turns do not follow each other: results of calls are messages too. In the session of an agent that
// a call opened, it follows the id of this call: s14c1.s2.
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:Pattern=`^s[0-9]+(c[0-9]+)?([.]s[0-9]+(c[0-9]+)?)*$`
type StepID string

// CurrentStep is the current step: a turn of the model or a tool call.
type CurrentStep struct {
	// id is the id of the turn or call. It is empty before the first turn of an attempt, while the
	// result is published, if it is longer than 32 bytes, and if an older runner reports.
	// +optional
	ID StepID `json:"id,omitempty"`
	// kind is Model or Tool.
	// +kubebuilder:validation:Enum=Model;Tool
	// +optional
	Kind string `json:"kind,omitempty"`
	// name is the name of the Model or tool.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +optional
	Name string `json:"name,omitempty"`
	// startedAt is when the step started.
	// +optional
	StartedAt *metav1.Time `json:"startedAt,omitempty"`
}

// MaxCount is the maximum number of steps, calls or seconds in the status of a Run. MaxUsage is the maximum number of
// tokens, and of millionths of a US dollar. No limit can be higher.
const (
	MaxCount = 999_999_999
	MaxUsage = 999_999_999_999
)

// Counts are the numbers of steps, calls and errors.
type Counts struct {
	// steps is the number of turns of the model.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	Steps int64 `json:"steps,omitempty"`
	// modelCalls is the number of requests to models, retries included.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	ModelCalls int64 `json:"modelCalls,omitempty"`
	// toolCalls is the number of tool calls that were made.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// toolErrors is the number of those tool calls that failed or were denied.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	ToolErrors int64 `json:"toolErrors,omitempty"`
	// errors is the number of model calls and tool calls that failed.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	Errors int64 `json:"errors,omitempty"`
	// repairs is the number of changes to requests to models that a provider refused, or would
	// refuse: spec.requestRepair of a Model.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	Repairs int64 `json:"repairs,omitempty"`
	// outageCalls is the number of those modelCalls that found the model unavailable and were
	// followed by a wait. They do not count against limits.modelCalls.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	OutageCalls int64 `json:"outageCalls,omitempty"`
}

// Usage is the tokens, cost and time that a Run used.
type Usage struct {
	// inputTokens is the number of input tokens, those read from a cache included.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// cacheReadTokens is the number of input tokens that were read from a prompt cache.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	CacheReadTokens int64 `json:"cacheReadTokens,omitempty"`
	// cacheWriteTokens is the number of input tokens that were written to a prompt cache.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	// outputTokens is the number of output tokens, reasoning included.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// reasoningTokens is the number of output tokens that were used for reasoning.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReasoningTokens int64 `json:"reasoningTokens,omitempty"`
	// totalTokens is what limits.tokens limits: input tokens that were not read from a
	// cache, plus output tokens.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalTokens int64 `json:"totalTokens,omitempty"`
	// childTokens is the part of totalTokens that child Runs used whose results the agents
	// have read. It is empty if no agent of the Run has asked for a child Run, and for Runs of
	// a Workflow.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	ChildTokens *int64 `json:"childTokens,omitempty"`
	// childCostMicroUSD is what these child Runs cost, as far as that is known.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	ChildCostMicroUSD *int64 `json:"childCostMicroUSD,omitempty"`
	// cost is the cost, for example 0.42USD. It is empty if a Model without prices was used.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f]*$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 24",message="must be at most 24 bytes"
	// +optional
	Cost string `json:"cost,omitempty"`
	// costMicroUSD is the cost in millionths of a US dollar.
	// +kubebuilder:validation:Maximum=999999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
	// duration is how long runners were alive, for example 2m50s.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f]*$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 24",message="must be at most 24 bytes"
	// +optional
	Duration string `json:"duration,omitempty"`
	// durationSeconds is the duration in seconds.
	// +kubebuilder:validation:Maximum=999999999
	// +kubebuilder:validation:Minimum=0
	// +optional
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
}

// RecentStep is one of the last steps. Older runners, which report no id, have longer summaries.
//
// +kubebuilder:validation:XValidation:rule="!has(self.id) || !has(self.summary) || size(bytes(self.summary)) <= 164",message="the summary must have at most 164 bytes if there is an id"
type RecentStep struct {
	// id is the id of the turn or call. It is empty for a summary of the session and for a push of
	// the result, if it is longer than 32 bytes, and if an older runner reports.
	// +optional
	ID StepID `json:"id,omitempty"`
	// kind is Model or Tool.
	// +kubebuilder:validation:Enum=Model;Tool
	// +optional
	Kind string `json:"kind,omitempty"`
	// name is the name of the Model or tool.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Name string `json:"name,omitempty"`
	// summary is one line that says what the model answered or the tool did.
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 200",message="must be at most 200 bytes"
	// +optional
	Summary string `json:"summary,omitempty"`
	// durationMs is the duration of the step in milliseconds.
	// +kubebuilder:validation:Maximum=100000000000
	// +kubebuilder:validation:Minimum=0
	// +optional
	DurationMs int64 `json:"durationMs,omitempty"`
}

// Confinement shows which restrictions of the agent's commands work. They are tested when the
// sandbox starts.
type Confinement struct {
	// process is Enforced if commands cannot gain privileges and cannot read the memory of the
	// process that starts them, otherwise Unenforced.
	// +kubebuilder:validation:Enum=Enforced;Unenforced
	// +optional
	Process string `json:"process,omitempty"`
	// files is Enforced if commands cannot replace the files that connect the sandbox with the
	// runner, otherwise Unenforced.
	// +kubebuilder:validation:Enum=Enforced;Unenforced
	// +optional
	Files string `json:"files,omitempty"`
	// network is Enforced if ports below 1024 and UDP were refused, and the pod did not reach a
	// port of the operator that NetworkPolicies do not allow, although it listens. PortsOnly:
	// the pod reached it, or was not shown not to reach it. Unenforced: more was reached.
	// +kubebuilder:validation:Enum=Enforced;PortsOnly;Unenforced
	// +optional
	Network string `json:"network,omitempty"`
	// landlockABI is the version of Landlock in the kernel of the cluster node. 0: the kernel
	// does not have Landlock.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	LandlockABI int32 `json:"landlockABI,omitempty"`
}

// Result is how an attempt ended. Only a committed result is final: an exit code alone never
// means success. A result that is not committed, with reason Waiting or Paused, means that the
// runner exited intentionally and the next attempt resumes.
type Result struct {
	// committed is true if the result is final.
	// +optional
	Committed bool `json:"committed,omitempty"`
	// reason is why the attempt ended. The reason of a committed result becomes the reason of
	// the condition Succeeded.
	// +kubebuilder:validation:MaxLength=20
	// +kubebuilder:validation:Pattern=`^[A-Z][A-Za-z]*$`
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says what happened and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:Pattern=`^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Message string `json:"message,omitempty"`
	// warning says what may be wrong although the Run ended as reason says: Toolsets, hooks and
	// tools whose endpoint no call could reach, images that a user shows and a model is not sent,
	// and an answer whose finish reason is not known. It also says if changed files of Git LFS are
	// not in the published commit. The message of the Run and an event with reason ResultWarning
	// repeat it.
	// +kubebuilder:validation:MaxLength=216
	// +kubebuilder:validation:Pattern=`^[^\x00-\x08\x0b-\x1f\x7f-\x9f]*$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 216",message="must be at most 216 bytes"
	// +optional
	Warning string `json:"warning,omitempty"`
	// text is the final answer of the agent, at most 8 KiB.
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 8192",message="must be at most 8 KiB"
	// +optional
	Text string `json:"text,omitempty"`
	// output is the final value of the agent as JSON that matches output.schema, at most 16
	// KiB. It is empty if the Agent has no output.schema.
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 16384",message="must be at most 16 KiB"
	// +optional
	Output string `json:"output,omitempty"`
	// files are files that tools created or changed in the workspace, at most 20.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Files []File `json:"files,omitempty"`
	// published is the Git branch to which the files were pushed.
	// +optional
	Published *Published `json:"published,omitempty"`
}

// Published is a Git branch to which files were pushed.
type Published struct {
	// branch is the name of the branch, deckhand/<run>.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:Pattern=`^[^\x00-\x1f\x7f-\x9f]*$`
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Branch string `json:"branch,omitempty"`
	// commit is the hash of the commit. It is empty if there was no change to push.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Commit string `json:"commit,omitempty"`
}

// File is a file that the Run created or changed.
type File struct {
	// path is the path as the agent sees it, for example /workspace/notes/a.txt.
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 256",message="must be at most 256 bytes"
	// +optional
	Path string `json:"path,omitempty"`
	// size is the size in bytes.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Size int64 `json:"size,omitempty"`
}
