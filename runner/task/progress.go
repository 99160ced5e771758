package task

import (
	"encoding/json"
	"fmt"
)

// Bounds of what a runner tells, in bytes. The schema of Run refuses more.
const (
	MaxText        = 8 << 10
	MaxOutput      = 16 << 10
	MaxMessage     = 1 << 10
	MaxWarning     = 216
	MaxSummary     = 200 // of a line about a message or a call
	MaxRecent      = 20
	MaxRecentText  = 164 // of the summary of a Recent
	MaxPending     = 8
	MaxAsked       = 6 << 10 // of what all Pending have in Question, Args, Schema, Approvers and DisplayDigest
	MaxDecided     = 20
	MaxRequest     = 80  // of the id of a Pending
	MaxStepID      = 32  // of the id of a Current or a Recent
	MaxAsker       = 128 // of the agent of a Pending
	MaxArgs        = 1 << 10
	MaxDelegated   = 4 << 10 // of the Args of a Delegation, which are never cut
	MaxSchema      = 1 << 10
	MaxRule        = 128
	MaxRefused     = 124 // of why a Decision was refused
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

// Progress is Run.status.progress as the runner writes it, whole, each time.
type Progress struct {
	Version int `json:"version"`
	Attempt int `json:"attempt"`
	// PodUID is the UID of the pod that reports, by which the operator knows its pod before
	// it has recorded the attempt.
	PodUID string `json:"podUID,omitempty"`
	// Sequence grows with each report: milliseconds of the wall clock, made
	// increasing, so that it survives a restart of the container.
	Sequence int64 `json:"sequence"`
	// Effects is Begun from before the first call that may change something
	// until the end; empty while all that was done can be done again.
	Effects string `json:"effects,omitempty"`
	// State is what the Run waits for, as a reason of its condition Succeeded:
	// WaitingForModel (RateLimited in older runners), AwaitingAnswer, AwaitingApproval,
	// AwaitingChild or Paused; empty while it works. AwaitingChild: all that waits waits
	// for child Runs.
	State string `json:"state,omitempty"`
	// ModelWait is the wait for a model that is unavailable; nil: none.
	ModelWait *ModelWait `json:"modelWait,omitempty"`
	// Model is the Model that answered last.
	Model string `json:"model,omitempty"`
	// AnsweredAt is when it did, RFC 3339, seconds; empty: no Model has answered this attempt.
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
	// Refused is what was refused, in all attempts; nil: nothing was.
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

// Pending is one request to users, or to the operator for a child Run.
type Pending struct {
	// ID names the request. An Approval has <call>-<digits>, where digits are the first
	// 32 of Digest; a Question and a Delegation have the id of their call; a Limit has
	// limit-<name>-<n>, where n is the limit. It becomes part of the name of a
	// Kubernetes object, which one request has to itself: lower-case letters,
	// digits, "-" and ".", not used twice by one attempt, at most MaxRequest bytes.
	ID string `json:"id"`
	// Kind is Approval, Question, Limit or Delegation.
	Kind string `json:"kind"`
	// Agent is the agent that asks, if it is not the Run's own, cut at MaxAsker. For a Delegation it is the requested
	// agent.
	Agent string `json:"agent,omitempty"`
	// Question is what is asked, cut at MaxMessage.
	Question string `json:"question,omitempty"`
	// Of an Approval: what would be called, its canonical arguments cut at MaxArgs, the
	// digest of both, the rule that asks, and the users who may decide. Of a
	// Delegation: Args are the whole input of the agent as canonical JSON, at most
	// MaxDelegated bytes, and Digest is the digest of agent and arguments.
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
	// Schema is the JSON Schema of the answer to a Question, at most MaxSchema
	// bytes; empty: any text.
	Schema    string `json:"schema,omitempty"`
	AskedAt   string `json:"askedAt"`             // RFC 3339, seconds
	ExpiresAt string `json:"expiresAt,omitempty"` // RFC 3339, seconds; empty: it waits for as long as it takes
}

// DisplaySize is how much of MaxAsked a DisplayDigest takes, with its name.
const DisplaySize = 80

// Size returns how much of MaxAsked a request takes.
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

// EffectsBegun is the one value of Progress.Effects.
const EffectsBegun = "Begun"

// Current is the step under way.
type Current struct {
	// ID is the id of the turn or call, as [ShownID] returns it; empty before the first turn of an
	// attempt, and for a push.
	ID string `json:"id,omitempty"`
	// Kind is Model or Tool; Name is the Model's or the tool's.
	Kind      string `json:"kind"`
	Name      string `json:"name,omitempty"`
	StartedAt string `json:"startedAt"` // RFC 3339, seconds
}

// ShownID returns the id of a turn or call for a report: empty if it is too long. A part of an id
// would be the id of something else.
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

// Counts are exact over all attempts, however long the Run.
type Counts struct {
	Steps      int64 `json:"steps"`
	ModelCalls int64 `json:"modelCalls"`
	ToolCalls  int64 `json:"toolCalls"`
	ToolErrors int64 `json:"toolErrors,omitempty"` // of ToolCalls
	Errors     int64 `json:"errors"`
	Repairs    int64 `json:"repairs,omitempty"`
	// OutageCalls are those of ModelCalls that found the model unavailable and were followed
	// by a wait.
	OutageCalls int64 `json:"outageCalls,omitempty"`
}

// Usage is what the Run used in all attempts.
type Usage struct {
	InputTokens      int64 `json:"inputTokens"`
	CacheReadTokens  int64 `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`
	OutputTokens     int64 `json:"outputTokens"`
	ReasoningTokens  int64 `json:"reasoningTokens,omitempty"`
	// TotalTokens is what limits.tokens counts: input − cacheRead + output.
	TotalTokens int64 `json:"totalTokens"`
	// ChildTokens and ChildCostMicroUSD are what child Runs used whose end the runner has
	// recorded, of the cost what is known; absent if it has asked for none.
	ChildTokens       *int64 `json:"childTokens,omitempty"`
	ChildCostMicroUSD *int64 `json:"childCostMicroUSD,omitempty"`
	// Cost ("0.42USD") and CostMicroUSD are absent where a price is not known.
	Cost         string `json:"cost,omitempty"`
	CostMicroUSD *int64 `json:"costMicroUSD,omitempty"`
	// Duration ("2m50s") and DurationSeconds are how long a runner was alive, over all
	// attempts.
	Duration        string `json:"duration,omitempty"`
	DurationSeconds int64  `json:"durationSeconds"`
}

// Recent is one of the last steps, in a line.
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

// Termination is the termination message of a runner: at most MaxTermination bytes of JSON.
// It is the second channel of a result, and the only one for an end without a commit, for
// example while a Secret is missing.
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

// noOutput stands in the message of a Termination for an output that does not
// fit.
const noOutput = "The output has %d bytes and does not fit here. "

// Encode returns the Termination as JSON of at most MaxTermination bytes: the files
// give way first, then the text, and the output, which is of no use in part,
// only when nothing else is left to give.
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
