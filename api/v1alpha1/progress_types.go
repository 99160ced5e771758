package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// RunProgress is what the runner reports: the last steps, exact counts, and in the
// end a committed result. Its size is bounded. The transcript is in the pod's log.
//
// +kubebuilder:validation:XValidation:rule="!has(self.pending) || size(self.pending) == 0 || !has(self.result) || !(has(self.result.text) || has(self.result.files))",message="a Run that waits for people has no text and files yet"
type RunProgress struct {
	// version is the version of the protocol between operator and runner. If the
	// runner's is newer than the operator's, the Run fails with reason Misconfigured.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Version int32 `json:"version,omitempty"`
	// attempt is the number of the attempt that wrote this report.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Attempt int32 `json:"attempt,omitempty"`
	// sequence increases with each report. It is the runner's clock in milliseconds.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Sequence int64 `json:"sequence,omitempty"`
	// effects is set to Begun before the first tool call that may change something.
	// +kubebuilder:validation:Enum=Begun
	// +optional
	Effects Effects `json:"effects,omitempty"`
	// state is what the Run waits for, as a reason of Succeeded=Unknown. It is empty
	// while the Run works.
	// +kubebuilder:validation:Enum=RateLimited;AwaitingAnswer;AwaitingApproval;AwaitingChild;Paused
	// +optional
	State string `json:"state,omitempty"`
	// model is the name of the Model that answered last.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +optional
	Model string `json:"model,omitempty"`
	// step is the current step.
	// +optional
	Step *CurrentStep `json:"step,omitempty"`
	// counts are the numbers of steps, calls and errors of all attempts. They are exact.
	// +optional
	Counts Counts `json:"counts,omitempty"`
	// usage is the tokens, cost and time that all attempts used.
	// +optional
	Usage Usage `json:"usage,omitempty"`
	// recent is the list of the last steps, at most 20, oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Recent []RecentStep `json:"recent,omitempty"`
	// pending are the requests that the Run waits for, oldest first: at most 8, with
	// at most 6 KiB of questions, arguments, schemas and groups in total. Others
	// follow when these are decided. To decide one, create a Decision named
	// <run>.<id>.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:XValidation:rule="self.map(p, (has(p.question) ? size(bytes(p.question)) : 0) + (has(p.args) ? size(bytes(p.args)) : 0) + (has(p.schema) ? size(bytes(p.schema)) : 0) + (has(p.approvers) ? p.approvers.groups.map(g, size(bytes(g))).sum() : 0)).sum() <= 6144",message="questions, arguments, schemas and groups have more than 6 KiB in total"
	// +optional
	Pending []PendingRequest `json:"pending,omitempty"`
	// decided are the last Decisions that the Run acted on or refused, at most 20,
	// oldest first.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Decided []DecidedRequest `json:"decided,omitempty"`
	// confinement is which restrictions of the agent's commands work, as tested when
	// the sandbox started.
	// +optional
	Confinement *Confinement `json:"confinement,omitempty"`
	// result is how the attempt ended.
	// +optional
	Result *Result `json:"result,omitempty"`
}

// Effects says whether the Run may have changed something.
type Effects string

// EffectsBegun means that the Run may have changed something.
const EffectsBegun Effects = "Begun"

// CurrentStep is the current step.
type CurrentStep struct {
	// number is the number of the step, from 1.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Number int64 `json:"number,omitempty"`
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

// Counts are the numbers of steps, calls and errors. They are exact.
type Counts struct {
	// steps is the number of responses of the model.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Steps int64 `json:"steps,omitempty"`
	// modelCalls is the number of requests to models, retries included.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ModelCalls int64 `json:"modelCalls,omitempty"`
	// toolCalls is the number of executed tool calls.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// errors is the number of model calls and tool calls that failed.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Errors int64 `json:"errors,omitempty"`
}

// Usage is the tokens, cost and time that a Run used.
type Usage struct {
	// inputTokens is the number of input tokens, those read from a cache included.
	// +kubebuilder:validation:Minimum=0
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`
	// cacheReadTokens is the number of input tokens that were read from a prompt cache.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CacheReadTokens int64 `json:"cacheReadTokens,omitempty"`
	// cacheWriteTokens is the number of input tokens that were written to a prompt cache.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	// outputTokens is the number of output tokens, reasoning included.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`
	// reasoningTokens is the number of output tokens that were used for reasoning.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReasoningTokens int64 `json:"reasoningTokens,omitempty"`
	// totalTokens is what limits.tokens limits: input tokens that were not read from a
	// cache, plus output tokens.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalTokens int64 `json:"totalTokens,omitempty"`
	// cost is the cost, for example 0.42USD. It is empty if a Model without prices was used.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 24",message="must be at most 24 bytes"
	// +optional
	Cost string `json:"cost,omitempty"`
	// costMicroUSD is the cost in millionths of a US dollar.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
	// duration is how long runners were alive, for example 2m50s.
	// +kubebuilder:validation:MaxLength=24
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 24",message="must be at most 24 bytes"
	// +optional
	Duration string `json:"duration,omitempty"`
	// durationSeconds is the duration in seconds.
	// +kubebuilder:validation:Minimum=0
	// +optional
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
}

// RecentStep is one of the last steps.
type RecentStep struct {
	// step is the number of the step.
	// +kubebuilder:validation:Maximum=1000000000
	// +kubebuilder:validation:Minimum=0
	// +optional
	Step int64 `json:"step,omitempty"`
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

// PendingRequest is a request to a user, or to the operator for a child Run.
type PendingRequest struct {
	// id identifies the request. A Decision on it has the id in spec.request. The id of
	// a request to approve a call ends in the first 32 digits of digest: an approval
	// of this id is good for this call only.
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 80",message="must be at most 80 bytes"
	// +optional
	ID string `json:"id,omitempty"`
	// kind is Approval (of a call, or of a node of a workflow), Question, Limit (more of
	// a limit that was reached) or Delegation (a child Run, which the operator
	// creates).
	// +kubebuilder:validation:Enum=Approval;Question;Limit;Delegation
	// +optional
	Kind string `json:"kind,omitempty"`
	// agent is the name of the Agent that asks, if it is not the Agent of the Run. For a
	// Delegation it is the Agent of the child Run.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Agent string `json:"agent,omitempty"`
	// question is the text of the request, at most 1 KiB.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Question string `json:"question,omitempty"`
	// tool is the tool of the call, for an Approval.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Tool string `json:"tool,omitempty"`
	// args are the arguments of the call as JSON, at most 1 KiB, or the input of the
	// child Run, at most 4 KiB.
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 4096",message="must be at most 4 KiB"
	// +optional
	Args string `json:"args,omitempty"`
	// argsTruncated is true if args are longer than that and their middle is left out.
	// The event pending in the log of the pod has all of them.
	// +optional
	ArgsTruncated bool `json:"argsTruncated,omitempty"`
	// digest is the SHA-256 digest of the tool and its complete arguments. Before the
	// call is made it is computed again: another call needs another approval.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Digest string `json:"digest,omitempty"`
	// rule is the name of the policy rule that requires the approval.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 128",message="must be at most 128 bytes"
	// +optional
	Rule string `json:"rule,omitempty"`
	// approvers are the users who may decide. If empty, every user who may create
	// Decisions may.
	// +optional
	Approvers *Approvers `json:"approvers,omitempty"`
	// schema is the JSON Schema of spec.value of the Decision. If empty, an answer is
	// any text.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Schema string `json:"schema,omitempty"`
	// askedAt is when the request was made.
	// +optional
	AskedAt *metav1.Time `json:"askedAt,omitempty"`
	// expiresAt is when the request expires: a call is then not made, a question not
	// answered, and a limit not raised.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
}

// DecidedRequest is a Decision that the Run acted on or refused.
type DecidedRequest struct {
	// name is the name of the Decision.
	// +kubebuilder:validation:MaxLength=144
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 144",message="must be at most 144 bytes"
	// +optional
	Name string `json:"name,omitempty"`
	// request is the id of the request that was decided.
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 80",message="must be at most 80 bytes"
	// +optional
	Request string `json:"request,omitempty"`
	// type is the type of the Decision.
	// +kubebuilder:validation:Enum=Approve;Deny;Answer;Grant;Message
	// +optional
	Type DecisionType `json:"type,omitempty"`
	// digest is the digest of the call that was approved or denied.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +optional
	Digest string `json:"digest,omitempty"`
	// refused says why the Decision was refused; empty if the Run acted on it.
	// +kubebuilder:validation:MaxLength=124
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 124",message="must be at most 124 bytes"
	// +optional
	Refused string `json:"refused,omitempty"`
}

// Confinement is which restrictions of the agent's commands work. Each was tested when
// the sandbox started.
type Confinement struct {
	// process is Enforced if commands cannot gain privileges and cannot read the memory
	// of the program that starts them, else Unenforced.
	// +kubebuilder:validation:Enum=Enforced;Unenforced
	// +optional
	Process string `json:"process,omitempty"`
	// files is Enforced if commands cannot replace the files that connect the sandbox
	// with the runner, else Unenforced.
	// +kubebuilder:validation:Enum=Enforced;Unenforced
	// +optional
	Files string `json:"files,omitempty"`
	// network is Enforced if nothing outside the pod was reached. It is PortsOnly if
	// ports below 1024 and UDP were refused but a higher port answered: a NetworkPolicy
	// closes those, if the cluster enforces it. Otherwise it is Unenforced.
	// +kubebuilder:validation:Enum=Enforced;PortsOnly;Unenforced
	// +optional
	Network string `json:"network,omitempty"`
	// landlockABI is the version of Landlock in the node's kernel. 0 means none.
	// +kubebuilder:validation:Minimum=0
	// +optional
	LandlockABI int32 `json:"landlockABI,omitempty"`
}

// Result is how an attempt ended. Only a committed result is final: an exit code alone
// never means success. A result that is not committed, with reason Waiting or Paused,
// means that the runner exited on purpose and the next attempt continues.
type Result struct {
	// committed is true once the result is final.
	// +optional
	Committed bool `json:"committed,omitempty"`
	// reason is why the attempt ended. Of a committed result it is the reason of the
	// condition Succeeded.
	// +kubebuilder:validation:Enum=Finished;StepLimit;TokenLimit;CostLimit;DurationLimit;ContextTooLong;Stuck;Denied;Rejected;Stopped;ModelUnavailable;ToolUnavailable;InvalidOutput;RunnerFailed;StorageFull;PublishFailed;SecretMissing;Misconfigured;Interrupted;Fenced;Waiting;Paused;DeadlineExceeded;NodeFailed;IterationLimit;AttemptsExhausted;DisruptionsExhausted;PodLost;OutOfMemory;ImagePullFailed;InvalidImage;PendingTimeout;AdmissionDenied;SandboxAltered;PodNameConflict;TaskTooLarge;DecisionMismatch;Restored;RevisionUnsupported
	// +optional
	Reason string `json:"reason,omitempty"`
	// message says what happened and what to do.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 1024",message="must be at most 1 KiB"
	// +optional
	Message string `json:"message,omitempty"`
	// warning names endpoints of Toolsets, hooks and tools that no call could reach,
	// although the work ended. It is added to the message of the Run, and reported by an
	// event with reason ToolUnavailable.
	// +kubebuilder:validation:MaxLength=216
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 216",message="must be at most 216 bytes"
	// +optional
	Warning string `json:"warning,omitempty"`
	// text is the last message of the agent, at most 8 KiB.
	// +kubebuilder:validation:MaxLength=8192
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 8192",message="must be at most 8 KiB"
	// +optional
	Text string `json:"text,omitempty"`
	// output is the answer of the agent as JSON that is valid against output.schema, at
	// most 16 KiB.
	// +kubebuilder:validation:MaxLength=16384
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 16384",message="must be at most 16 KiB"
	// +optional
	Output string `json:"output,omitempty"`
	// files is the list of files that tools created or changed in the workspace, at most 20.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Files []File `json:"files,omitempty"`
	// published is the Git branch that the changes were pushed to.
	// +optional
	Published *Published `json:"published,omitempty"`
}

// Published is a Git branch that changes were pushed to.
type Published struct {
	// branch is deckhand/<run>.
	// +kubebuilder:validation:MaxLength=128
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
