package task

import (
	"encoding/json"
	"fmt"
)

// Bounds of the reports of a runner, in bytes, or items of lists. The schema of Run refuses more.
const (
	MaxText        = 8 << 10
	MaxOutput      = 16 << 10
	MaxMessage     = 1 << 10
	MaxWarning     = 216
	MaxSummary     = 200 // of a line about a message or a call
	MaxRecent      = 20
	MaxRecentText  = 164 // of the summary of a Recent
	MaxPending     = 8
	MaxAsked       = 6 << 10 // of Question, Args, Schema, Approvers and DisplayDigest of all Pending together
	MaxDecided     = 20
	MaxRequest     = 80  // of the id of a Pending
	MaxStepID      = 32  // of the id of a Current or a Recent
	MaxAsker       = 128 // of the agent of a Pending
	MaxArgs        = 1 << 10
	MaxDelegated   = 4 << 10 // of the Args of a Delegation, which are never cut
	MaxSchema      = 1 << 10
	MaxRule        = 128
	MaxRefused     = 124 // of Decided.Refused
	MaxHosts       = 20  // of Refused
	MaxHost        = 253
	MaxDeniedTools = 8  // of Refused
	MaxTool        = 64 // of DeniedTool
	MaxFiles       = 20
	MaxPath        = 256
	MaxReason      = 64
	MaxCost        = 24
	MaxTermination = 4 << 10
)

// Progress is status.progress of a Run. The runner writes all of it with each report.
type Progress struct {
	Version int `json:"version"`
	Attempt int `json:"attempt"`
	// PodUID is the UID of the reporting pod. By it the operator recognizes the pod of an attempt that it has not
	// recorded yet.
	PodUID string `json:"podUID,omitempty"`
	// Sequence grows with each report, also after a restart of the container: it is the time in Unix milliseconds, or
	// one more than the last if the clock has not advanced.
	Sequence int64 `json:"sequence"`
	// Effects is EffectsBegun from before the first call that may have effects until the end of the Run. While it is
	// empty, the Run can be repeated from the beginning.
	Effects string `json:"effects,omitempty"`
	// State is what the Run waits for, as a reason of its condition Succeeded: WaitingForModel (RateLimited in older
	// runners), AwaitingAnswer, AwaitingApproval, AwaitingChild or Paused; empty while any session or call works. It is
	// AwaitingChild if all of them wait for child Runs.
	State string `json:"state,omitempty"`
	// ModelWait is the wait for a model that is unavailable; nil: none.
	ModelWait *ModelWait `json:"modelWait,omitempty"`
	// Model is the Model that answered last.
	Model string `json:"model,omitempty"`
	// AnsweredAt is the time of its last answer, RFC 3339, seconds; empty: no Model has answered this attempt.
	AnsweredAt string   `json:"answeredAt,omitempty"`
	Step       *Current `json:"step,omitempty"`
	Counts     Counts   `json:"counts"`
	Usage      Usage    `json:"usage"`
	Recent     []Recent `json:"recent,omitempty"`
	// Pending are the requests to users and, for delegations, to the operator, oldest first.
	Pending []Pending `json:"pending,omitempty"`
	// Decided are the last Decisions that the runner acted on, oldest first.
	Decided []Decided `json:"decided,omitempty"`
	// Confinement is how commands are confined, as tested when the sandbox started.
	Confinement *Confinement `json:"confinement,omitempty"`
	// Refused has the refused connections and calls of all attempts; nil: there were none.
	Refused *Refused `json:"refused,omitempty"`
	Result  *Result  `json:"result,omitempty"`
}

// Confinement is how commands of the sandbox are confined.
type Confinement struct {
	Process     string `json:"process,omitempty"` // Enforced or Unenforced, as Files
	Files       string `json:"files,omitempty"`
	Network     string `json:"network,omitempty"` // Enforced, PortsOnly or Unenforced
	LandlockABI int    `json:"landlockABI,omitempty"`
}

// A ModelWait is a wait for a model that is unavailable.
type ModelWait struct {
	// Model is the name of the Model that was asked last.
	Model string `json:"model"`
	// Since is when the first request failed; RFC 3339, seconds.
	Since string `json:"since"`
	// NextTryAt is when the model is asked again; RFC 3339, seconds. Empty: the wait was
	// given up, and another attempt would only wait again.
	NextTryAt string `json:"nextTryAt,omitempty"`
	// Promised reports that the provider named the time of the next try.
	Promised bool `json:"promised,omitempty"`
	// Message is the last error, cut at MaxWarning.
	Message string `json:"message,omitempty"`
}

// Pending is one request to users, or to the operator for a child Run. MaxRequest bounds its id, MaxAsker its agent,
// MaxMessage its question, MaxArgs or MaxDelegated its arguments, and MaxSchema its schema.
type Pending struct {
	// ID is the id by which a Decision names the request. An Approval has CALL-DIGITS, where digits are the first 32 of
	// the digest; a Question and a Delegation have the id of their call; a Limit has limit-NAME-N, where N is the limit.
	// It becomes part of the name of a Kubernetes object, so it has only lower-case letters, digits, "-" and ".". No two
	// requests of an attempt have the same.
	ID string `json:"id"`
	// Kind is Approval, Question, Limit or Delegation.
	Kind string `json:"kind"`
	// Agent is the agent that asks, if it is not the Run's own. For a Delegation it is the requested agent.
	Agent string `json:"agent,omitempty"`
	// Question is what is asked.
	Question string `json:"question,omitempty"`
	// For an Approval, these are the tool, its canonical arguments, which the status may have cut, the digest of both,
	// the rule that asks, and the users who may decide. For a Delegation, Args is the whole input of the agent as
	// canonical JSON, and Digest is the digest of agent and arguments.
	Tool          string     `json:"tool,omitempty"`
	Args          string     `json:"args,omitempty"`
	ArgsTruncated bool       `json:"argsTruncated,omitempty"`
	Digest        string     `json:"digest,omitempty"`
	Rule          string     `json:"rule,omitempty"`
	Approvers     *Approvers `json:"approvers,omitempty"`
	// DisplayDigest is the digest of the event of the request in the log, which has the whole
	// arguments: a log whose text has another digest is not the runner's. A Delegation has none.
	DisplayDigest string `json:"displayDigest,omitempty"`
	// Cancelled reports that the call of a Delegation was cancelled: the operator stops the child Run, and the runner
	// waits a while for its usage.
	Cancelled bool `json:"cancelled,omitempty"`
	// Schema is the JSON Schema of the answer to a Question; empty: any text.
	Schema    string `json:"schema,omitempty"`
	AskedAt   string `json:"askedAt"`             // RFC 3339, seconds
	ExpiresAt string `json:"expiresAt,omitempty"` // RFC 3339, seconds; empty: it does not expire
}

// DisplaySize is the part of MaxAsked that a DisplayDigest takes, with the name of the field, in bytes.
const DisplaySize = 80

// Size returns the part of MaxAsked that a request takes, in bytes.
func (p Pending) Size() int {
	size := len(p.Question) + len(p.Args) + len(p.Schema)
	if p.Approvers != nil {
		size += p.Approvers.Size()
	}
	if p.DisplayDigest != "" {
		size += DisplaySize
	}
	return size
}

// The kinds of Pending.
const (
	PendingApproval = "Approval"
	PendingQuestion = "Question"
	PendingLimit    = "Limit"
	// PendingDelegation asks for a child Run; no Decision answers it.
	PendingDelegation = "Delegation"
)

// Decided is a Decision that the runner acted on.
type Decided struct {
	Name    string `json:"name"`
	Request string `json:"request,omitempty"`
	// Type is the type of the Decision.
	Type string `json:"type,omitempty"`
	// Digest is the digest of the call to which it applied.
	Digest string `json:"digest,omitempty"`
	// Refused is why the runner did not act on it, cut at MaxRefused; empty: it did.
	Refused string `json:"refused,omitempty"`
}

// EffectsBegun is the only value of Progress.Effects.
const EffectsBegun = "Begun"

// Current is the current step.
type Current struct {
	// ID is the id of the turn or call, as [ShownID] returns it; empty before the first turn of an
	// attempt, and for a push.
	ID string `json:"id,omitempty"`
	// Kind is Model or Tool; Name is the Model's or the tool's.
	Kind      string `json:"kind"`
	Name      string `json:"name,omitempty"`
	StartedAt string `json:"startedAt"` // RFC 3339, seconds
}

// ShownID returns the id of a turn or call for a report: empty if it is too long. It is not cut, because a part of an
// id could be the id of another turn or call.
func ShownID(id string) string {
	if len(id) > MaxStepID {
		return ""
	}
	return id
}

// The kinds of a step.
const (
	KindModel = "Model"
	KindTool  = "Tool"
)

// Counts are counted over all attempts. They are exact, unlike the lists of steps, which are bounded.
type Counts struct {
	Steps      int64 `json:"steps"`
	ModelCalls int64 `json:"modelCalls"`
	ToolCalls  int64 `json:"toolCalls"`
	ToolErrors int64 `json:"toolErrors,omitempty"` // of ToolCalls
	Errors     int64 `json:"errors"`
	Repairs    int64 `json:"repairs,omitempty"`
	// OutageCalls counts the ModelCalls that failed because the model was unavailable, and after which the runner
	// waited.
	OutageCalls int64 `json:"outageCalls,omitempty"`
}

// Usage is the usage of all attempts of a Run.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	OutputTokens     int64 `json:"outputTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens,omitempty"`
	// TotalTokens are the tokens that limits.tokens counts: input − cacheRead + output.
	TotalTokens int64 `json:"totalTokens"`
	// ChildTokens and ChildCostMicroUSD are the part of the usage by child Runs whose end the runner has recorded. The
	// cost is the sum of the known costs. Both are absent if the runner has requested no child Run.
	ChildTokens       *int64 `json:"childTokens,omitempty"`
	ChildCostMicroUSD *int64 `json:"childCostMicroUSD,omitempty"`
	// Cost ("0.42USD") and CostMicroUSD are absent if a price is not known.
	Cost         string `json:"cost,omitempty"`
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
	// Duration ("2m50s") and DurationSeconds are the time for which runners were alive, over all attempts.
	Duration        string `json:"duration,omitempty"`
	DurationSeconds int64  `json:"durationSeconds"`
}

// Recent summarizes one of the last steps.
type Recent struct {
	// ID is the id of the turn or call, as [ShownID] returns it; empty for a summary, and for a push.
	ID         string `json:"id,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name,omitempty"`
	Summary    string `json:"summary,omitempty"`
	DurationMs int64  `json:"durationMs"`
}

// Result is how the attempt ended. It counts only when Committed; an exit code
// alone never means success.
type Result struct {
	Committed bool   `json:"committed"`
	Reason    Reason `json:"reason"`
	// Message describes, for users, what happened and what to do next.
	Message string `json:"message,omitempty"`
	// Warning describes what the owner of the Agent should correct although the Run ended with Reason: endpoints that
	// no call could reach, work that is not in the commit. At most MaxWarning bytes.
	Warning string `json:"warning,omitempty"`
	Text    string `json:"text,omitempty"`
	// Output is JSON, as a string, valid against the Agent's output schema.
	Output string `json:"output,omitempty"`
	Files  []File `json:"files,omitempty"`
	// Published is the branch that the work was pushed to.
	Published *Published `json:"published,omitempty"`
}

// Published is a branch that work was pushed to. Commit is empty when nothing had
// changed.
type Published struct {
	Branch string `json:"branch"`
	Commit string `json:"commit,omitempty"`
}

// File is a file that the Run made or changed.
type File struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// Termination is the termination message of a runner: at most MaxTermination bytes of JSON. It has the result in case
// the report to the status was lost. An end without a commit, for example because a Secret is missing, is reported only
// here.
type Termination struct {
	Version int    `json:"version"`
	Attempt int    `json:"attempt"`
	Result  Result `json:"result"`
	Counts  Counts `json:"counts"`
	Usage   Usage  `json:"usage"`
	Effects string `json:"effects,omitempty"`
	// GaveUp reports of an end with ReasonModelUnavailable whether the runner had waited for the model as long as
	// limits allow, so that another attempt would only wait again; nil: another reason, or an older runner. The last
	// report may be older than this end, and its ModelWait that of an earlier outage.
	GaveUp *bool `json:"gaveUp,omitempty"`
}

// noOutput replaces an output that does not fit, in the message of a Termination.
const noOutput = "The output has %d bytes and does not fit here. "

// Encode returns the Termination as JSON of at most MaxTermination bytes. If it is longer, it leaves out the files,
// then parts of the text, the text, the warning and the end of the message. It drops the output last, and whole,
// because a part of a JSON value has no use.
func (t Termination) Encode() []byte {
	text := t.Result.Text
	shorten := []func(*Result){
		func(*Result) {},
		func(r *Result) { r.Files = nil },
		func(r *Result) { r.Text = Cut(text, MaxTermination/2) },
		func(r *Result) { r.Text = Cut(text, MaxTermination/4) },
		func(r *Result) { r.Text = "" },
		func(r *Result) { r.Warning = "" },
		func(r *Result) { r.Message = Cut(r.Message, MaxTermination/8) },
		func(r *Result) {
			if r.Output != "" {
				r.Message = Cut(fmt.Sprintf(noOutput, len(r.Output))+r.Message, MaxTermination/8)
			}
			r.Output, r.Text = "", Cut(text, MaxTermination/4)
		},
		func(r *Result) { r.Text = "" },
	}
	var data []byte
	for _, cut := range shorten {
		cut(&t.Result)
		data, _ = json.Marshal(t) // strings and numbers only: cannot fail
		if len(data) <= MaxTermination {
			break
		}
	}
	return data
}
