package v1alpha1

import "slices"

// WaitingReasons are the reasons of Ready=False that end without a change of the
// object itself: an object that it names does not exist, or must change.
var WaitingReasons = []string{ReasonNotFound, ReasonNotReady, ReasonPricesMissing}

// ActiveReasons are the reasons of Succeeded=Unknown.
var ActiveReasons = []string{
	ReasonPending, ReasonQueued, ReasonUnschedulable, ReasonImagePulling, ReasonSecretMissing, ReasonQuotaExceeded,
	ReasonStarting, ReasonRunning, ReasonRetrying, ReasonWaitingForModel, ReasonAwaitingApproval, ReasonAwaitingAnswer,
	ReasonAwaitingChild, ReasonPaused, ReasonStopping, ReasonRevisionUnsupported,
}

// FailureReasons are the reasons of Succeeded=False.
var FailureReasons = []string{
	ReasonStepLimit, ReasonTokenLimit, ReasonCostLimit, ReasonDurationLimit, ReasonDeadlineExceeded, ReasonContextTooLong,
	ReasonStuck, ReasonRejected, ReasonDenied, ReasonStopped, ReasonModelUnavailable, ReasonToolUnavailable,
	ReasonInvalidOutput, ReasonNodeFailed, ReasonIterationLimit,
	ReasonPodLost, ReasonRunnerFailed, ReasonOutOfMemory, ReasonStorageFull, ReasonPublishFailed, ReasonImagePullFailed,
	ReasonInvalidImage, ReasonPendingTimeout, ReasonAdmissionDenied, ReasonSandboxAltered, ReasonPodNameConflict,
	ReasonMisconfigured, ReasonNothingToContinue, ReasonTaskTooLarge, ReasonDecisionMismatch, ReasonRestored, ReasonRevisionUnsupported,
}

// NodeReasons are the reasons of a node of a workflow Run: why it waits, failed or was not
// reached.
var NodeReasons = slices.Concat([]string{
	ReasonQueued, ReasonQuotaExceeded, ReasonAwaitingApproval,
	NodeReasonLost, NodeReasonExpression, NodeReasonTooManyItems, NodeReasonTooLarge, NodeReasonCancelled,
	NodeReasonRefused, NodeReasonFailed,
}, FailureReasons)
