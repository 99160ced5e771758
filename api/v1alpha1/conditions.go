package v1alpha1

// All condition types and reasons. The comment of a reason says in which status of the
// condition it occurs, what it means, and what to do.

// Conditions of a Run.
const (
	// ConditionSucceeded is Unknown while the Run is active, True when its work is done, and False when it failed or was
	// stopped. True and False are final. `kubectl get runs` shows its reason.
	ConditionSucceeded = "Succeeded"

	// ConditionFinished is True when the Run is final, whether it succeeded or not. `kubectl wait --for=condition=Finished
	// run/x` waits for it; Succeeded then says how the Run ended.
	ConditionFinished = "Finished"

	// ConditionReconciling is True while an object may become ready, or a Run may finish, without a change of its spec.
	// kstatus (Flux, helm --wait, Argo CD) reports it as InProgress. On a Run its message is the request of the operator
	// that failed last, and why; on a finished Run, what could not be deleted.
	ConditionReconciling = "Reconciling"

	// ConditionStalled is True when an object cannot become ready until its own spec changes, when a Decision was refused,
	// or when a Run failed, which is final. kstatus reports it as Failed.
	ConditionStalled = "Stalled"
)

// Conditions of a Model, a Toolset, an Agent, a Workflow and a Schedule.
const (
	// ConditionReady is True when the spec is valid and every object that it names exists, False when not, and Unknown
	// until the operator has read the object. The operator may not read Secrets, so it does not check them.
	ConditionReady = "Ready"

	// ConditionDurable is True on an Agent whose Runs continue after a lost pod, False if they may fail. The message says why.
	ConditionDurable = "Durable"

	// ConditionReachable is True on a Model after it answered a Run, False while Runs wait for it and none was answered
	// since, and Unknown until a Run has asked it. It does not change Ready, and new Runs start all the same.
	ConditionReachable = "Reachable"
)

// Conditions of a Decision.
const (
	// ConditionApplied is Unknown until the runner has acted on the Decision, then True, or False when the Decision was
	// refused. True and False are final.
	ConditionApplied = "Applied"
)

// Reasons of Applied.
const (
	// ReasonApplied (True): the runner acted on the Decision. Remedy: Nothing.
	ReasonApplied = "Applied"
	// ReasonRefused (False): the Decision does not match a request of the Run, or its author may not make it. The message
	// names the cause. Remedy: Create another Decision with the name in the message.
	ReasonRefused = "Refused"
	// ReasonWaiting (Unknown): the runner has not received the Decision yet. Remedy: Wait.
	ReasonWaiting = "Waiting"
)

// Reasons of Ready and Durable.
const (
	// ReasonReady (True): the spec is valid and every object that it names exists. Remedy: Nothing.
	ReasonReady = "Ready"
	// ReasonNotFound (False): an object that it names does not exist in the namespace. The message has the kind, the
	// name and the field. Remedy: Create the object, or correct the name.
	ReasonNotFound = "NotFound"
	// ReasonNotReady (False): an object that it names, itself or through others, is not Ready. The message has the kind
	// and the name, and repeats the cause. Remedy: Correct that object.
	ReasonNotReady = "NotReady"
	// ReasonInvalid (False): a field of the spec is not valid, or was replaced by another. The message has its path, of a
	// Workflow the node, of an expression the position, and what to write. Remedy: Correct the field.
	ReasonInvalid = "Invalid"
	// ReasonCycle (False): the fallbacks of a Model form a cycle, or a Workflow contains itself. The message shows the
	// cycle. Remedy: Remove one of the references in it.
	ReasonCycle = "Cycle"
	// ReasonNameTaken (False): two tools have the same name. The message names both. Remedy: Remove or rename one.
	ReasonNameTaken = "NameTaken"
	// ReasonPricesMissing (False): limits.cost is set, but a Model that the Agent can use has no prices. Remedy: Set
	// spec.prices of the Model, or remove limits.cost.
	ReasonPricesMissing = "PricesMissing"
	// ReasonSandboxMissing (False): a tool runs commands without spec.sandbox. Remedy: Set it, or remove the tool.
	ReasonSandboxMissing = "SandboxMissing"
	// ReasonTooLarge (False): the Agent or Workflow does not fit a ConfigMap together with everything that it names; or
	// the spec has more than 256 KiB of JSON; or more Agents, Toolsets or Secrets are reached than one pod may hold; or
	// Workflows are nested more than 5 deep. The message names the bound and the largest parts. Remedy: Shorten them, or
	// name fewer.
	ReasonTooLarge = "TooLarge"
	// ReasonSuspended (True): spec.suspend of the Schedule is true, so it creates no Runs. Remedy: Set spec.suspend to
	// false to continue.
	ReasonSuspended = "Suspended"
	// ReasonPodDurability (False): files and journal are stored in the pod. A Run whose pod is lost after it changed
	// something fails with reason PodLost. Remedy: Set spec.workspace.durability to Volume.
	ReasonPodDurability = "PodDurability"
	// ReasonVolumeDurability (True): files and journal are stored in a PersistentVolumeClaim of the Run. Remedy: Nothing.
	ReasonVolumeDurability = "VolumeDurability"
)

// Reasons of Reachable.
const (
	// ReasonAnswered (True): the Model answered a Run, and no Run waits for it since. Remedy: Nothing.
	ReasonAnswered = "Answered"
	// ReasonUnavailable (False): Runs wait for the Model, or gave the wait up. The message has the last error. Remedy:
	// Correct the server, the endpoint or the quota. Runs that wait continue by themselves.
	ReasonUnavailable = "Unavailable"
	// ReasonNotAsked (Unknown): no Run has asked the Model. Remedy: Nothing.
	ReasonNotAsked = "NotAsked"
)

// Reasons of Succeeded=Unknown: the Run is active.
const (
	// ReasonPending (Unknown): the Run waits for an object that does not exist or is not Ready. The message names it.
	// Remedy: Create or correct the object. The Run continues by itself, within limits.pending.
	ReasonPending = "Pending"
	// ReasonQueued (Unknown): the Run waits for other Runs of its Agent to finish (spec.concurrency), or for the
	// controller that set a scheduling gate on its pod. Remedy: Wait, or raise spec.concurrency of the Agent.
	ReasonQueued = "Queued"
	// ReasonUnschedulable (Unknown): no node can run the pod. The message is the scheduler's. Remedy: Add a node, or lower
	// the resources in the Agent's podTemplate and sandbox.
	ReasonUnschedulable = "Unschedulable"
	// ReasonImagePulling (Unknown): an image of the pod is being pulled, or the last pull failed. Remedy: Wait. If the
	// message names an error, correct the image or its pull secret.
	ReasonImagePulling = "ImagePulling"
	// ReasonSecretMissing (Unknown): a Secret, or a key of it, does not exist. The message names both. Remedy: Create the
	// Secret. The Run continues by itself, within limits.pending.
	ReasonSecretMissing = "SecretMissing"
	// ReasonQuotaExceeded (Unknown): a ResourceQuota of the namespace has no room for the pod or its volume, or for a child
	// Run, or requires limits that the pod does not set. Remedy: Raise the quota, or wait until other pods or Runs finish.
	// If the message names limits, set them where it says, or create a LimitRange with defaults.
	ReasonQuotaExceeded = "QuotaExceeded"
	// ReasonStarting (Unknown): the pod exists and the runner has not reported yet. Remedy: Wait.
	ReasonStarting = "Starting"
	// ReasonRunning (Unknown): the runner works. Remedy: Wait.
	ReasonRunning = "Running"
	// ReasonRetrying (Unknown): an attempt ended without a result and the next one follows. Remedy: Wait. The message
	// names the cause.
	ReasonRetrying = "Retrying"
	// ReasonWaitingForModel (Unknown): the model and its fallbacks are unavailable, or their provider asks to wait. The
	// message names the Model, since when, and the cause. Remedy: Wait; or correct the Model or its server, add a
	// fallback, or set spec.desiredState to Stopped. limits.modelOutage and limits.wait bound the wait.
	ReasonWaitingForModel = "WaitingForModel"
	// ReasonAwaitingApproval (Unknown): a tool call, or an approval node of a Workflow, needs the approval of a person.
	// Remedy: Create the Decision that the message names.
	ReasonAwaitingApproval = "AwaitingApproval"
	// ReasonAwaitingAnswer (Unknown): the agent asked a question, or asks for more than a limit allows. Remedy: Create the
	// Decision that the message names.
	ReasonAwaitingAnswer = "AwaitingAnswer"
	// ReasonAwaitingChild (Unknown): the Run waits for the result of a child Run. Remedy: Wait, or look at the child Run
	// that the message names.
	ReasonAwaitingChild = "AwaitingChild"
	// ReasonPaused (Unknown): spec.desiredState is Paused. Remedy: Set spec.desiredState to Running to continue.
	ReasonPaused = "Paused"
	// ReasonStopping (Unknown): spec.desiredState is Stopped and the runner is ending its work. Remedy: Wait.
	ReasonStopping = "Stopping"
	// ReasonRevisionUnsupported (Unknown or False): this operator cannot read the revision of the Agent or Workflow with
	// which the Run started. Unknown: a newer operator stored it. False: it is older than this operator supports. Remedy:
	// Upgrade the operator. If the Run failed, create another Run.
	ReasonRevisionUnsupported = "RevisionUnsupported"
)

// Reasons of Succeeded=True: the Run is final and its work is done.
const (
	// ReasonFinished (True): the result is stored. Remedy: Nothing.
	ReasonFinished = "Finished"
	// ReasonReused (True): the Run is a part of a workflow that is retried, and has the result of the Run in
	// spec.continueFrom. Nothing was done again, and its usage is zero. Remedy: Nothing. To do the work again, retry the
	// workflow with spec.continueFrom.node.
	ReasonReused = "Reused"
)

// Reasons of Succeeded=False: the Run is final and its work is not done.
const (
	// ReasonStepLimit (False): limits.steps, limits.modelCalls or limits.toolCalls was reached. Remedy: Raise the limit,
	// or split the task.
	ReasonStepLimit = "StepLimit"
	// ReasonTokenLimit (False): limits.tokens was reached. Remedy: Raise the limit, or split the task.
	ReasonTokenLimit = "TokenLimit"
	// ReasonCostLimit (False): limits.cost was reached. Remedy: Raise the limit, or use a cheaper Model.
	ReasonCostLimit = "CostLimit"
	// ReasonDurationLimit (False): limits.duration was reached. Remedy: Raise the limit, or split the task.
	ReasonDurationLimit = "DurationLimit"
	// ReasonDeadlineExceeded (False): limits.deadline passed before the Run finished. Remedy: Raise the limit, or create
	// the Run again when less is queued.
	ReasonDeadlineExceeded = "DeadlineExceeded"
	// ReasonContextTooLong (False): the conversation does not fit the context window of the model. Remedy: Use a Model
	// with a larger context window, or split the task.
	ReasonContextTooLong = "ContextTooLong"
	// ReasonStuck (False): the agent repeated the same calls without progress. Remedy: Make the instructions or the prompt
	// more precise.
	ReasonStuck = "Stuck"
	// ReasonRejected (False): the agent declined the task. The message is the agent's. Remedy: Change the prompt or the
	// tools.
	ReasonRejected = "Rejected"
	// ReasonDenied (False): a hook denied the work, or a person denied an approval node. Remedy: Look at the reason in the
	// message.
	ReasonDenied = "Denied"
	// ReasonStopped (False): spec.desiredState was Stopped. Remedy: Nothing. To do the work, create another Run.
	ReasonStopped = "Stopped"
	// ReasonModelUnavailable (False): requests to the model failed, retries included. The message has the error. Remedy:
	// Correct the endpoint or credentials of the Model, or add a fallback.
	ReasonModelUnavailable = "ModelUnavailable"
	// ReasonToolUnavailable (False): a tool that the task needs cannot be reached. The message has the error. Remedy:
	// Correct the endpoint of the Toolset, hook or tool.
	ReasonToolUnavailable = "ToolUnavailable"
	// ReasonInvalidOutput (False): the answer of the agent does not match spec.output.schema, or is empty, cut or a tool
	// call as text, corrections included. The message says which. Remedy: Simplify the schema, turn on the parser of tool
	// calls of the model server, or use another Model.
	ReasonInvalidOutput = "InvalidOutput"
	// ReasonNodeFailed (False): a node of the Workflow failed. The message names it. Remedy: Look at the Run of that node.
	ReasonNodeFailed = "NodeFailed"
	// ReasonIterationLimit (False): a loop reached maxIterations before its condition was true. Remedy: Raise
	// maxIterations, or correct loop.until.
	ReasonIterationLimit = "IterationLimit"
	// ReasonPodLost (False): the pod was lost after the Run had begun to change things, and the journal with it, so
	// another attempt could repeat the changes; or more pods were lost to evictions, node failures or deletion than
	// spec.maxDisruptions allows. Remedy: Check what was done, then create another Run. Set workspace.durability to
	// Volume to keep the journal.
	ReasonPodLost = "PodLost"
	// ReasonRunnerFailed (False): the runner itself failed. The message has the error. Remedy: Look at the log of the pod,
	// and report an error of the runner.
	ReasonRunnerFailed = "RunnerFailed"
	// ReasonOutOfMemory (False): the runner was killed because it used more memory than its limit. Remedy: Raise the
	// memory in podTemplate.resources of the Agent.
	ReasonOutOfMemory = "OutOfMemory"
	// ReasonStorageFull (False): the workspace is full. Remedy: Raise workspace.size of the Agent.
	ReasonStorageFull = "StorageFull"
	// ReasonPublishFailed (False): the changes could not be pushed to the Git repository, or only files of Git LFS were
	// changed. The message has the error. Remedy: Correct the repository or its credentials.
	ReasonPublishFailed = "PublishFailed"
	// ReasonImagePullFailed (False): an image of the pod cannot be pulled. The message names it. Remedy: Correct the
	// image, or add its pull secret.
	ReasonImagePullFailed = "ImagePullFailed"
	// ReasonInvalidImage (False): an image of the pod is not a valid image name. Remedy: Correct the image in the Agent or
	// Toolset.
	ReasonInvalidImage = "InvalidImage"
	// ReasonPendingTimeout (False): limits.pending passed before the Run could start, or before the Run of a Workflow could
	// create its next child Run. The message names what it waited for. Remedy: Correct the cause, then create another Run.
	ReasonPendingTimeout = "PendingTimeout"
	// ReasonAdmissionDenied (False): an admission policy of the cluster refused the pod or its volume. The message is the
	// policy's. Remedy: Change the Agent so that the policy admits it, or change the policy.
	ReasonAdmissionDenied = "AdmissionDenied"
	// ReasonSandboxAltered (False): another controller changed the sandbox container, or added to it. Remedy: Exclude pods
	// of Deckhand from that webhook.
	ReasonSandboxAltered = "SandboxAltered"
	// ReasonPodNameConflict (False): pods of other owners have the names that the attempts need. Remedy: Delete those
	// pods, or give the Run another name.
	ReasonPodNameConflict = "PodNameConflict"
	// ReasonMisconfigured (False): the Run, its Agent or its Model is invalid in a way that is only found when it runs.
	// The message names the field. Remedy: Correct it, then create another Run.
	ReasonMisconfigured = "Misconfigured"
	// ReasonNothingToContinue (False): the session or the files of the Run in spec.continueFrom cannot be read. The
	// message says why. Remedy: Continue another Run, or create a Run without continueFrom.
	ReasonNothingToContinue = "NothingToContinue"
	// ReasonTaskTooLarge (False): the prompt and the input do not fit a pod. Remedy: Shorten them, or put long material
	// into files of the workspace.
	ReasonTaskTooLarge = "TaskTooLarge"
	// ReasonDecisionMismatch (False): a runner acted on an approval for which no Decision exists. It may be compromised.
	// Remedy: Look at what the agent did, and at the audit log of the cluster.
	ReasonDecisionMismatch = "DecisionMismatch"
	// ReasonRestored (False): a backup tool created the Run without its status, so its work may already be done. Remedy:
	// To do the work again, create another Run.
	ReasonRestored = "Restored"
)
