package v1alpha1

// Conditions and reasons: the whole list, each with what it means and what to
// do. A reason is an answer to "why", in the condition that it stands in.

// Conditions of a Run.
const (
	// ConditionSucceeded is Unknown while the Run is active, True when its work
	// is done, False when it is not and never will be. Its reason is what
	// `kubectl get runs` shows.
	ConditionSucceeded = "Succeeded"

	// ConditionFinished is True when the Run is final either way, else False:
	// `kubectl wait --for=condition=Finished run/x`, then Succeeded says which.
	ConditionFinished = "Finished"

	// ConditionReconciling is True while the operator or a runner is at work, so
	// that kstatus (Flux, Argo CD, helm --wait) says InProgress. Of a final Run its
	// message says what the operator could not delete, and why.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when the Run ended without success, so that
	// kstatus says Failed.
	ConditionStalled = "Stalled"
)

// Conditions of a Model, a Toolset, an Agent, a Workflow and a Schedule.
const (
	// ConditionReady is True when the object is well formed and everything it
	// names exists, False when not, Unknown until the operator has seen it.
	// Secrets are not looked at: the operator may not read them.
	ConditionReady = "Ready"

	// ConditionDurable, of an Agent, is False when a lost pod may cost the work:
	// its message says what.
	ConditionDurable = "Durable"
)

// Conditions of a Decision.
const (
	// ConditionApplied is Unknown until the runner has acted on it, then True, or
	// False when it is refused; neither ever changes.
	ConditionApplied = "Applied"
)

// Reasons of Applied.
const (
	// ReasonApplied (True): the runner acted on it.
	ReasonApplied = "Applied"
	// ReasonRefused (False): it does not fit what the Run asks; the message says
	// why, and what to do.
	ReasonRefused = "Refused"
	// ReasonWaiting (Unknown): it is on its way to the runner.
	ReasonWaiting = "Waiting"
)

// Reasons of Ready and Durable.
const (
	// ReasonReady (True): everything is in place.
	ReasonReady = "Ready"
	// ReasonModelNotFound (False): spec.model, or a route, names a Model that is
	// not there.
	ReasonModelNotFound = "ModelNotFound"
	// ReasonModelNotReady (False): a Model that it names is not Ready.
	ReasonModelNotReady = "ModelNotReady"
	// ReasonFallbackNotFound (False): a Model names a fallback that is not there.
	ReasonFallbackNotFound = "FallbackNotFound"
	// ReasonFallbackCycle (False): the fallbacks of a Model lead back to it, or to
	// each other; the message shows the way.
	ReasonFallbackCycle = "FallbackCycle"
	// ReasonPricesMissing (False): cost is limited, but a Model that the agent may
	// reach has no prices.
	ReasonPricesMissing = "PricesMissing"
	// ReasonAgentNotFound (False): a tool names an Agent that is not there.
	ReasonAgentNotFound = "AgentNotFound"
	// ReasonAgentNotReady (False): an Agent that it may give work to, itself or
	// through others, is not Ready.
	ReasonAgentNotReady = "AgentNotReady"
	// ReasonTooManyAgents (False): more Agents can be reached in one pod than it
	// holds.
	ReasonTooManyAgents = "TooManyAgents"
	// ReasonTooManySecrets (False): more Secrets are named than one pod mounts.
	ReasonTooManySecrets = "TooManySecrets"
	// ReasonToolNameTaken (False): two tools would have one name.
	ReasonToolNameTaken = "ToolNameTaken"
	// ReasonHookToolNotFound (False): a hook is for a tool that the agent does not
	// have, so it would never be asked.
	ReasonHookToolNotFound = "HookToolNotFound"
	// ReasonToolsetNotFound (False): a tool names a Toolset that is not there.
	ReasonToolsetNotFound = "ToolsetNotFound"
	// ReasonToolsetNotReady (False): a Toolset that it names is not Ready.
	ReasonToolsetNotReady = "ToolsetNotReady"
	// ReasonTooManyToolsets (False): more Toolsets can be reached in one pod than it
	// holds.
	ReasonTooManyToolsets = "TooManyToolsets"
	// ReasonToolsetInvalid (False): a Toolset cannot work as written; the message
	// names the field.
	ReasonToolsetInvalid = "ToolsetInvalid"
	// ReasonSandboxMissing (False): a tool needs spec.sandbox, which is not there.
	ReasonSandboxMissing = "SandboxMissing"
	// ReasonPolicyInvalid (False): an expression of policy, or of an approval, does
	// not compile; the message says which, where and why.
	ReasonPolicyInvalid = "PolicyInvalid"
	// ReasonInstructionsInvalid (False): the instructions read a value that
	// input does not declare.
	ReasonInstructionsInvalid = "InstructionsInvalid"
	// ReasonInputInvalid (False): input is not a schema or a list of fields that
	// Deckhand supports, or a default does not fit its field. The message has the path.
	ReasonInputInvalid = "InputInvalid"
	// ReasonOutputSchemaInvalid (False): the same of output.schema.
	ReasonOutputSchemaInvalid = "OutputSchemaInvalid"
	// ReasonInferenceInvalid (False): inference.extra has more than 4 KiB of JSON, or
	// is not an object.
	ReasonInferenceInvalid = "InferenceInvalid"
	// ReasonTooLarge (False): the Agent, with all that it may reach, does not fit a
	// ConfigMap; the message says what takes the most.
	ReasonTooLarge = "TooLarge"
	// ReasonGraphInvalid (False): the nodes of a Workflow wait in a circle, or for one
	// that is not there; the message shows which.
	ReasonGraphInvalid = "GraphInvalid"
	// ReasonNodeInvalid (False): a node cannot work as written.
	ReasonNodeInvalid = "NodeInvalid"
	// ReasonExpressionInvalid (False): an expression does not compile, or has the
	// wrong type; the message says the node, the field and the column.
	ReasonExpressionInvalid = "ExpressionInvalid"
	// ReasonWorkflowNotFound (False): a node, or a Schedule, names a Workflow that is
	// not there.
	ReasonWorkflowNotFound = "WorkflowNotFound"
	// ReasonWorkflowNotReady (False): a Workflow that a node names is not Ready.
	ReasonWorkflowNotReady = "WorkflowNotReady"
	// ReasonWorkflowCycle (False): a Workflow leads back to itself, or more than 5
	// are in each other.
	ReasonWorkflowCycle = "WorkflowCycle"
	// ReasonScheduleInvalid (False): schedule or timeZone of a Schedule is none.
	ReasonScheduleInvalid = "ScheduleInvalid"
	// ReasonSuspended (True): a Schedule is suspended and makes no Runs.
	ReasonSuspended = "Suspended"
	// ReasonPodDurability (Durable=False): files and journal live in the pod.
	ReasonPodDurability = "PodDurability"
	// ReasonVolumeDurability (Durable=True): they live on a claim of the Run.
	ReasonVolumeDurability = "VolumeDurability"
)

// Reasons of Succeeded=Unknown: the Run is active.
const (
	// ReasonPending: it waits for something to exist; the message names it.
	ReasonPending = "Pending"
	// ReasonQueued: it waits for its turn: for other Runs of its Agent to end, where
	// spec.concurrency is reached, or for whoever gates its pod.
	ReasonQueued = "Queued"
	// ReasonUnschedulable: no node takes the pod; the message is the scheduler's.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImagePulling: an image of the pod is being pulled, or cannot be yet.
	ReasonImagePulling = "ImagePulling"
	// ReasonSecretMissing: a Secret, or a key in it, is not there. The Run goes
	// on by itself once it is.
	ReasonSecretMissing = "SecretMissing"
	// ReasonQuotaExceeded: a ResourceQuota has no room for the pod.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonStarting: the pod exists, the runner has not reported yet.
	ReasonStarting = "Starting"
	// ReasonRunning: the runner works.
	ReasonRunning = "Running"
	// ReasonRetrying: an attempt ended; the next is due.
	ReasonRetrying = "Retrying"
	// ReasonRateLimited: the provider asks to wait for long.
	ReasonRateLimited = "RateLimited"
	// ReasonAwaitingApproval: a person must approve or deny a call.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonAwaitingAnswer: the agent asked a person something, or asks for more
	// than a limit allows; the message says how to answer.
	ReasonAwaitingAnswer = "AwaitingAnswer"
	// ReasonAwaitingChild: a child Run does a part of the work.
	ReasonAwaitingChild = "AwaitingChild"
	// ReasonPaused: spec.desiredState is Paused.
	ReasonPaused = "Paused"
	// ReasonStopping: spec.desiredState is Stopped and the runner winds up.
	ReasonStopping = "Stopping"
	// ReasonRevisionUnsupported: a newer operator stored the revision of the Agent or
	// the Workflow that the Run started with. The Run continues when the operator is
	// upgraded. With Succeeded=False: an operator that is too old stored it.
	ReasonRevisionUnsupported = "RevisionUnsupported"
)

// ReasonFinished is the one reason of Succeeded=True: the result is committed.
const ReasonFinished = "Finished"

// Reasons of Succeeded=False: the Run is final and its work is not done.
const (
	// ReasonStepLimit: limits.steps, modelCalls or toolCalls is reached.
	ReasonStepLimit = "StepLimit"
	// ReasonTokenLimit: limits.tokens is reached.
	ReasonTokenLimit = "TokenLimit"
	// ReasonCostLimit: limits.cost is reached.
	ReasonCostLimit = "CostLimit"
	// ReasonDurationLimit: limits.duration is reached.
	ReasonDurationLimit = "DurationLimit"
	// ReasonDeadlineExceeded: limits.deadline has passed.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonContextTooLong: the session does not fit the model's window.
	ReasonContextTooLong = "ContextTooLong"
	// ReasonStuck: the agent repeats itself.
	ReasonStuck = "Stuck"
	// ReasonRejected: the agent declined the work; the message is its own.
	ReasonRejected = "Rejected"
	// ReasonDenied: a hook did not allow the work; of a node, a person did not.
	ReasonDenied = "Denied"
	// ReasonStopped: spec.desiredState was Stopped.
	ReasonStopped = "Stopped"
	// ReasonModelUnavailable: the model's endpoint failed, retries included.
	ReasonModelUnavailable = "ModelUnavailable"
	// ReasonToolUnavailable: a tool that the work needs cannot be reached.
	ReasonToolUnavailable = "ToolUnavailable"
	// ReasonInvalidOutput: the agent did not answer as output.schema demands.
	ReasonInvalidOutput = "InvalidOutput"
	// ReasonNodeFailed: a node of the workflow failed.
	ReasonNodeFailed = "NodeFailed"
	// ReasonIterationLimit: a loop did not reach its end.
	ReasonIterationLimit = "IterationLimit"
	// ReasonAttemptsExhausted: more attempts failed than spec.maxRetries allows.
	ReasonAttemptsExhausted = "AttemptsExhausted"
	// ReasonDisruptionsExhausted: more attempts were lost to infrastructure than
	// spec.maxDisruptions allows.
	ReasonDisruptionsExhausted = "DisruptionsExhausted"
	// ReasonPodLost: the pod was lost after it had begun to change things, and
	// its journal with it.
	ReasonPodLost = "PodLost"
	// ReasonRunnerFailed: the runner itself failed.
	ReasonRunnerFailed = "RunnerFailed"
	// ReasonOutOfMemory: the runner was killed for its memory.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonStorageFull: the workspace is full.
	ReasonStorageFull = "StorageFull"
	// ReasonPublishFailed: the work could not be published.
	ReasonPublishFailed = "PublishFailed"
	// ReasonImagePullFailed: an image of the pod cannot be pulled; the message says
	// whose.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonInvalidImage: an image of the pod is no image name.
	ReasonInvalidImage = "InvalidImage"
	// ReasonPendingTimeout: limits.pending has passed; the message says what it
	// waited for.
	ReasonPendingTimeout = "PendingTimeout"
	// ReasonAdmissionDenied: the cluster's admission refused the pod.
	ReasonAdmissionDenied = "AdmissionDenied"
	// ReasonSandboxAltered: something was injected into the sandbox.
	ReasonSandboxAltered = "SandboxAltered"
	// ReasonPodNameConflict: other pods hold the names of the attempts.
	ReasonPodNameConflict = "PodNameConflict"
	// ReasonMisconfigured: the Run, its Agent or its Model cannot work as
	// written; the message says what to change.
	ReasonMisconfigured = "Misconfigured"
	// ReasonTaskTooLarge: the task does not fit a pod's annotations.
	ReasonTaskTooLarge = "TaskTooLarge"
	// ReasonDecisionMismatch: a runner acted on a decision that does not exist.
	ReasonDecisionMismatch = "DecisionMismatch"
	// ReasonRestored: a backup restored the Run without its status; doing the
	// work again must be asked for.
	ReasonRestored = "Restored"
)

// ActiveReasons are the reasons of Succeeded=Unknown.
var ActiveReasons = []string{
	ReasonPending, ReasonQueued, ReasonUnschedulable, ReasonImagePulling, ReasonSecretMissing, ReasonQuotaExceeded,
	ReasonStarting, ReasonRunning, ReasonRetrying, ReasonRateLimited, ReasonAwaitingApproval, ReasonAwaitingAnswer,
	ReasonAwaitingChild, ReasonPaused, ReasonStopping, ReasonRevisionUnsupported,
}

// FailureReasons are the reasons of Succeeded=False.
var FailureReasons = []string{
	ReasonStepLimit, ReasonTokenLimit, ReasonCostLimit, ReasonDurationLimit, ReasonDeadlineExceeded, ReasonContextTooLong,
	ReasonStuck, ReasonRejected, ReasonDenied, ReasonStopped, ReasonModelUnavailable, ReasonToolUnavailable,
	ReasonInvalidOutput, ReasonNodeFailed, ReasonIterationLimit, ReasonAttemptsExhausted, ReasonDisruptionsExhausted,
	ReasonPodLost, ReasonRunnerFailed, ReasonOutOfMemory, ReasonStorageFull, ReasonPublishFailed, ReasonImagePullFailed,
	ReasonInvalidImage, ReasonPendingTimeout, ReasonAdmissionDenied, ReasonSandboxAltered, ReasonPodNameConflict,
	ReasonMisconfigured, ReasonTaskTooLarge, ReasonDecisionMismatch, ReasonRestored, ReasonRevisionUnsupported,
}
