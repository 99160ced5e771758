package task

import (
	"fmt"
)

// A Reason is the reason of Run's condition Succeeded with which an attempt ends. These are the reasons of a runner.
type Reason string

// The reasons of a runner.
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
	// ReasonNothingToContinue means that the session of the Run to continue cannot be read.
	ReasonNothingToContinue Reason = "NothingToContinue"
	ReasonInterrupted       Reason = "Interrupted" // by SIGTERM; never a condition's reason
	ReasonFenced            Reason = "Fenced"      // another attempt took over; never a condition's reason
	ReasonWaiting           Reason = "Waiting"     // for a user, a child Run or a model, the journal being durable; never a condition's reason
	ReasonPaused            Reason = "Paused"      // by spec.desiredState, the journal being durable
)

// Exit codes of a runner. The operator uses them only if the runner has committed no result.
const (
	ExitCommitted    = 0   // the result is committed
	ExitRunnerFailed = 1   // the runner itself failed
	ExitBadTask      = 64  // the task is invalid
	ExitWorkFailed   = 65  // the work failed, for the reason in the commit
	ExitUnavailable  = 69  // upstream is unavailable
	ExitWaiting      = 75  // waiting for a user, a child Run, a model or a clock
	ExitLimit        = 76  // a limit was reached
	ExitFenced       = 77  // another attempt took over
	ExitConfig       = 78  // misconfigured, or a Secret is missing
	ExitInterrupted  = 143 // SIGTERM; the journal has the work until then
)

// ExitCode returns the exit code of a runner whose attempt ended with r. An unknown reason has the code of
// RunnerFailed.
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
	case ReasonSecretMissing, ReasonMisconfigured, ReasonNothingToContinue:
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

// Reasons has all reasons of a runner.
var Reasons = []Reason{
	ReasonFinished, ReasonStepLimit, ReasonTokenLimit, ReasonCostLimit, ReasonDurationLimit, ReasonContextTooLong,
	ReasonStuck, ReasonDenied, ReasonRejected, ReasonStopped, ReasonModelUnavailable, ReasonToolUnavailable, ReasonInvalidOutput, ReasonRunnerFailed, ReasonStorageFull,
	ReasonPublishFailed, ReasonSecretMissing, ReasonMisconfigured, ReasonNothingToContinue, ReasonInterrupted, ReasonFenced, ReasonWaiting, ReasonPaused,
}

// An EndError ends an attempt with a Reason. A part of the runner that cannot continue returns one. Any other error
// ends the attempt with RunnerFailed.
type EndError struct {
	Reason Reason
	// Message describes, for users, what happened and what to do next.
	Message string
	// Cause may be nil.
	Cause error
}

// End returns an EndError with a message in the format of fmt.Errorf. The error of a %w becomes its Cause.
func End(r Reason, format string, args ...any) *EndError {
	err := fmt.Errorf(format, args...)
	e := &EndError{Reason: r, Message: err.Error()}
	if wrapped, ok := err.(interface{ Unwrap() error }); ok {
		e.Cause = wrapped.Unwrap()
	}
	return e
}

func (e *EndError) Error() string { return string(e.Reason) + ": " + e.Message }

func (e *EndError) Unwrap() error { return e.Cause }

// Commits reports whether an attempt that ends with this reason has a result, which ends the Run or counts as a failed
// attempt. After any other reason another attempt resumes the Run, or already has.
func (r Reason) Commits() bool {
	switch r {
	case ReasonInterrupted, ReasonFenced, ReasonSecretMissing, ReasonWaiting, ReasonPaused:
		return false
	default:
		return true
	}
}

// Refused counts what was refused to the agent: connections of commands in the sandbox, and tool calls.
type Refused struct {
	// Connections counts all refused connections, also those to hosts beyond the first MaxHosts.
	Connections int64 `json:"connections,omitempty"`
	// Hosts are the first hosts and ports that were refused, at most MaxHosts.
	Hosts []RefusedHost `json:"hosts,omitempty"`
	// ToolCalls counts all denied calls, also those of tools beyond the first MaxDeniedTools.
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// Tools are the first tools whose calls were denied, at most MaxDeniedTools.
	Tools []DeniedTool `json:"tools,omitempty"`
}

// DeniedTool is a tool whose calls were denied.
type DeniedTool struct {
	// Name is at most MaxTool bytes.
	Name string `json:"name"`
	// By is DeniedByPolicy, DeniedByApprover, DeniedByTimeout or DeniedByHook.
	By    string `json:"by,omitempty"`
	Count int64  `json:"count,omitempty"`
	// FirstID is the id of the first denied call, as [ShownID] returns it.
	FirstID string `json:"firstID,omitempty"`
}

// The sources of denials of tool calls.
const (
	DeniedByPolicy   = "Policy"   // a rule
	DeniedByApprover = "Approver" // a user
	DeniedByTimeout  = "Timeout"  // no user decided in time, or no user can be asked
	DeniedByHook     = "Hook"
)

// RefusedHost is a host and port to which connections were refused.
type RefusedHost struct {
	// Host is at most MaxHost bytes.
	Host string `json:"host"`
	Port int    `json:"port"`
	// Reason is RefusedNotListed or RefusedNotPublic.
	Reason string `json:"reason,omitempty"`
	Count  int64  `json:"count,omitempty"`
	// FirstID is the id of the turn or call that had begun last when the first was refused, as [ShownID]
	// returns it.
	FirstID string `json:"firstID,omitempty"`
}

// The reasons for which a connection is refused.
const (
	RefusedNotListed = "NotListed" // no entry of the Agent's list allows it
	RefusedNotPublic = "NotPublic" // the name leads to no public address
)
