package task

// A Reason says why an attempt ended, in the words of Run's condition
// Succeeded. These are the ones that a runner gives.
type Reason string

// The reasons that a runner gives.
const (
	ReasonFinished         Reason = "Finished"
	ReasonStepLimit        Reason = "StepLimit"
	ReasonTokenLimit       Reason = "TokenLimit"
	ReasonCostLimit        Reason = "CostLimit"
	ReasonDurationLimit    Reason = "DurationLimit"
	ReasonContextTooLong   Reason = "ContextTooLong"
	ReasonStuck            Reason = "Stuck"
	ReasonDenied           Reason = "Denied"
	ReasonRejected         Reason = "Rejected"
	ReasonStopped          Reason = "Stopped"
	ReasonModelUnavailable Reason = "ModelUnavailable"
	ReasonToolUnavailable  Reason = "ToolUnavailable"
	ReasonInvalidOutput    Reason = "InvalidOutput"
	ReasonRunnerFailed     Reason = "RunnerFailed"
	ReasonStorageFull      Reason = "StorageFull"
	ReasonPublishFailed    Reason = "PublishFailed"
	ReasonSecretMissing    Reason = "SecretMissing" // an end without a commit: try again later
	ReasonMisconfigured    Reason = "Misconfigured"
	ReasonInterrupted      Reason = "Interrupted" // by SIGTERM; never a condition's reason
	ReasonFenced           Reason = "Fenced"      // another attempt took over; never a condition's reason
	ReasonWaiting          Reason = "Waiting"     // for a user, a child Run or a model, the journal being durable; never a condition's reason
	ReasonPaused           Reason = "Paused"      // by spec.desiredState, the journal being durable
)

// Exit codes of a runner. The operator goes by the committed result first and
// by these only without one.
const (
	ExitCommitted    = 0   // the result is committed
	ExitRunnerFailed = 1   // the runner itself failed
	ExitBadTask      = 64  // the task makes no sense
	ExitWorkFailed   = 65  // the work failed, for the reason in the commit
	ExitUnavailable  = 69  // upstream is unavailable
	ExitWaiting      = 75  // waiting for a user, a child Run, a model or a clock
	ExitLimit        = 76  // a limit was reached
	ExitFenced       = 77  // another attempt took over
	ExitConfig       = 78  // misconfigured, or a Secret is missing
	ExitInterrupted  = 143 // SIGTERM; the journal says how far it came
)

// ExitCode is the exit code that goes with a reason.
func ExitCode(r Reason) int {
	switch r {
	case ReasonFinished:
		return ExitCommitted
	case ReasonStepLimit, ReasonTokenLimit, ReasonCostLimit, ReasonDurationLimit, ReasonContextTooLong:
		return ExitLimit
	case ReasonRejected, ReasonInvalidOutput, ReasonStorageFull, ReasonStopped, ReasonStuck, ReasonDenied, ReasonPublishFailed:
		return ExitWorkFailed
	case ReasonModelUnavailable, ReasonToolUnavailable:
		return ExitUnavailable
	case ReasonSecretMissing, ReasonMisconfigured:
		return ExitConfig
	case ReasonFenced:
		return ExitFenced
	case ReasonWaiting, ReasonPaused:
		return ExitWaiting
	case ReasonInterrupted:
		return ExitInterrupted
	case ReasonRunnerFailed:
		return ExitRunnerFailed
	}
	return ExitRunnerFailed
}

// Reasons are all that a runner gives.
var Reasons = []Reason{
	ReasonFinished, ReasonStepLimit, ReasonTokenLimit, ReasonCostLimit, ReasonDurationLimit, ReasonContextTooLong,
	ReasonStuck, ReasonDenied, ReasonRejected, ReasonStopped, ReasonModelUnavailable, ReasonToolUnavailable, ReasonInvalidOutput, ReasonRunnerFailed, ReasonStorageFull,
	ReasonPublishFailed, ReasonSecretMissing, ReasonMisconfigured, ReasonInterrupted, ReasonFenced, ReasonWaiting, ReasonPaused,
}
