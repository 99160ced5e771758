package task

import (
	"encoding/json"
	"reflect"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Snapshot is what is the same for every Run of one version of an Agent. It
// holds no secret.
type Snapshot struct {
	Version int   `json:"version"`
	Agent   Agent `json:"agent"`
	// Agents are all Agents that the Agent may call in its pod, directly or through others,
	// each once, by name.
	Agents []Agent `json:"agents,omitempty"`
	// Models are all that one of the agents may reach, each once.
	Models []Model `json:"models"`
	// Toolsets are all that one of the agents may use, each once, by name.
	Toolsets []Toolset `json:"toolsets,omitempty"`
	// Sandbox is where commands run; nil: nowhere.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// Workspace is its initial content, and how it is published.
	Workspace Source `json:"workspace,omitzero"`
}

// An Agent is who does the work.
type Agent struct {
	Name         string `json:"name"`
	Description  string `json:"description,omitempty"`
	Instructions string `json:"instructions"`
	// Models name the Agent's Model and, after it, its fallbacks in order. Empty:
	// the first of the Snapshot.
	Models []string `json:"models,omitempty"`
	// Params go over those of each Model.
	Params step.Params `json:"params,omitzero"`
	// Routes name other Models, with their fallbacks, for a use: Summarize,
	// Subagent or Repair.
	Routes map[string][]string `json:"routes,omitempty"`
	// TurnRoutes are tried in order before each turn: the first that applies names the Models
	// that answer it, in place of Models.
	TurnRoutes []TurnRoute `json:"turnRoutes,omitempty"`
	Tools      []Tool      `json:"tools,omitempty"`
	// Policy decides which calls are made: the first rule that matches.
	Policy []Rule `json:"policy,omitempty"`
	Hooks  []Hook `json:"hooks,omitempty"`
	// InputSchema is the JSON Schema of the input of a Run and of the arguments of this
	// agent as a tool; empty: {prompt: string}.
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	// OutputSchema, a JSON Schema, makes finish the only way to end.
	OutputSchema json.RawMessage `json:"outputSchema,omitempty"`
	// OutputFiles are patterns of the files that go to the log of a Run without a volume;
	// empty: the files that the result names.
	OutputFiles   []string `json:"outputFiles,omitempty"`
	ParallelTools int      `json:"parallelTools"`
	// Limits bound the agent's session where it is called by another; those of
	// the Run's own session are in the Task.
	Limits Limits `json:"limits,omitzero"`
	// IgnoreInstructions leaves the AGENTS.md of the workspace unread.
	IgnoreInstructions bool `json:"ignoreInstructions,omitempty"`
	// Events is Full, Steps or None.
	Events string `json:"events"`
}

// A TurnRoute is a Model with its fallbacks for some turns.
type TurnRoute struct {
	Models []string `json:"models"`
	// When is a CEL expression over the turn; empty: every turn.
	When string `json:"when,omitempty"`
}

// The uses that Agent.Routes may name.
const (
	RouteSummarize = "Summarize"
	RouteSubagent  = "Subagent"
	RouteRepair    = "Repair"
)

// A Tool is one entry of an Agent's tools: exactly one of Builtin, Agent, Toolset and
// Custom is set.
type Tool struct {
	Builtin string `json:"builtin,omitempty"`
	// Agent names another agent: an agent of the Snapshot, or, with ModeRun, an agent that
	// works in a child Run.
	Agent string `json:"agent,omitempty"`
	// Mode is where that agent works: ModeRun, or empty: in the pod.
	Mode string `json:"mode,omitempty"`
	// Description and InputSchema are those of an agent with ModeRun, which is not
	// among the Agents of the Snapshot.
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	// Toolset names a Toolset of the Snapshot.
	Toolset string `json:"toolset,omitempty"`
	// Allow names the only tools of a Toolset or a Builtin that the agent may call, Deny the
	// tools that it may not. Tools of a Toolset are named as its server names them.
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Approval requires a user's Decision for its calls.
	Approval *Approval `json:"approval,omitempty"`
	// Custom names a tool that this runner was built with.
	Custom string `json:"custom,omitempty"`
	// Name is what the model calls an agent; empty: the agent's own name.
	Name string `json:"name,omitempty"`
	// TimeoutSeconds bounds one call; 0 means the tool's own default.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// Hosts are the only ones that a tool of the web reaches, exact or as
	// *.suffix; empty: every public one.
	Hosts []string `json:"hosts,omitempty"`
	// Endpoint is the base URL of a search.
	Endpoint string `json:"endpoint,omitempty"`
	SecretKey
}

// ModeRun is the Mode of an agent that works in a child Run.
const ModeRun = "Run"

// A SecretKey names a key of a Secret; the zero value none.
type SecretKey struct {
	Secret string `json:"secret,omitempty"`
	Key    string `json:"key,omitempty"`
}

// MissingKey returns how messages say that a Secret has no such key, by which the command line finds it.
func MissingKey(k SecretKey) string {
	return "Secret " + k.Secret + " has no key " + k.Key
}

// A Hook is asked over HTTP at one point of an agent's work.
type Hook struct {
	Name string `json:"name"`
	// Point is BeforeSession, AfterSession, BeforeModel, AfterModel, BeforeTool or
	// AfterTool.
	Point string `json:"point"`
	URL   string `json:"url"`
	// Tools narrow a point of a tool to those named; empty: all.
	Tools          []string `json:"tools,omitempty"`
	TimeoutSeconds int64    `json:"timeoutSeconds"`
	// Ignore continues when the hook cannot be asked; otherwise that denies the step.
	Ignore bool `json:"ignore,omitempty"`
	SecretKey
}

// A Model is how to reach a language model.
type Model struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	// API is Responses, ChatCompletions or Messages, if the provider has it. Empty: Messages if
	// Format or the provider is Anthropic's, and otherwise ChatCompletions.
	API string `json:"api,omitempty"`
	// Format is OpenAI or Anthropic, where the provider speaks both; empty: OpenAI.
	Format string `json:"format,omitempty"`
	// Driver names what a runner was built with, for the provider Custom.
	Driver string `json:"driver,omitempty"`
	Model  string `json:"model"`
	// Deployment and APIVersion are Azure's.
	Deployment string            `json:"deployment,omitempty"`
	APIVersion string            `json:"apiVersion,omitempty"`
	Endpoint   string            `json:"endpoint,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	// SecretKey names where the credential comes from; empty when the endpoint
	// asks for none.
	SecretKey
	// ContextWindow and MaxOutputTokens are the values in the Model; 0: the known values for its name.
	ContextWindow   int64       `json:"contextWindow,omitempty"`
	MaxOutputTokens int64       `json:"maxOutputTokens,omitempty"`
	Params          step.Params `json:"params,omitzero"`
	Prices          *Prices     `json:"prices,omitempty"`
	// RequestRepair is RepairDisabled, or empty: a request that the provider refuses is
	// sent once more without what it refuses, and schemas of tools are sent in a form that
	// all providers accept.
	RequestRepair string `json:"requestRepair,omitempty"`
	// Timeouts bound the waits for an answer.
	Timeouts ModelTimeouts `json:"timeouts,omitzero"`
}

// ModelTimeouts bound the waits for one answer of a Model. 0 is the default of its provider.
type ModelTimeouts struct {
	FirstByteSeconds    int64 `json:"firstByteSeconds,omitempty"`
	BetweenBytesSeconds int64 `json:"betweenBytesSeconds,omitempty"`
	TotalSeconds        int64 `json:"totalSeconds,omitempty"`
}

// RepairDisabled is the RequestRepair of a Model whose requests are sent as they are.
const RepairDisabled = "Disabled"

// Prices are in millionths of a US dollar per million tokens.
type Prices struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	// Tiers are the prices of long requests, in ascending order.
	Tiers []PriceTier `json:"tiers,omitempty"`
	// Changes are the prices of other times. The last that holds at the time of a request
	// replaces these prices, tiers included.
	Changes []PriceChange `json:"changes,omitempty"`
}

// PriceTier is the prices of requests with more than Above input tokens.
type PriceTier struct {
	Above      int64 `json:"above"`
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// PriceChange is the prices of a time: from a day on (2027-01-01, UTC), or each day from Start
// to before End (01:00, UTC).
type PriceChange struct {
	From  string `json:"from,omitempty"`
	Start string `json:"start,omitempty"`
	End   string `json:"end,omitempty"`

	Input      int64       `json:"input"`
	Output     int64       `json:"output"`
	CacheRead  int64       `json:"cacheRead"`
	CacheWrite int64       `json:"cacheWrite"`
	Tiers      []PriceTier `json:"tiers,omitempty"`
}

// A Task is what is one Run's own.
type Task struct {
	Version int    `json:"version"`
	Run     Run    `json:"run"`
	Attempt int    `json:"attempt"`
	Prompt  string `json:"prompt,omitempty"`
	// Images are files below the workspace that are shown with the prompt.
	Images []string `json:"images,omitempty"`
	// Input has the values of the Agent's input, a JSON object.
	Input json.RawMessage `json:"input,omitempty"`
	// User is the spec.user of the Run.
	User string `json:"user,omitempty"`
	// Labels are those of the Run, for rules of a policy.
	Labels map[string]string `json:"labels,omitempty"`
	Limits Limits            `json:"limits"`
	Meter  Meter             `json:"meter,omitzero"`
	// Refused is what was refused in all attempts before this one.
	Refused *Refused `json:"refused,omitempty"`
	// Retry is why the previous attempt ended; empty for the first.
	Retry string `json:"retry,omitempty"`
	// Continue is the Run whose session this one continues; nil: none.
	Continue *Continue `json:"continue,omitempty"`
	// Durable is true when the journal outlives the pod.
	Durable bool `json:"durable,omitempty"`
	// Traces are where spans are sent; nil: nowhere.
	Traces *Traces `json:"traces,omitempty"`
	// SnapshotHash is the hash that the Snapshot file must have, as Hash makes it.
	SnapshotHash string `json:"snapshotHash"`
}

// A Run names the Run that a Task belongs to.
type Run struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
}

// SourceFolder is the folder of a state directory for a copy of the state directory of the Run that is continued.
const SourceFolder = "source"

// A Continue names a Run that has ended, whose session another Run continues.
type Continue struct {
	// Run is its name, and RunUID its UID.
	Run    string `json:"run"`
	RunUID string `json:"runUID"`
	// Step is the last step to keep, as in ids of calls; 0: all of them.
	Step int64 `json:"step,omitempty"`
	// Models are the Models whose definitions have not changed since.
	Models []string `json:"models,omitempty"`
}

// DefaultModelOutage is the default of Limits.ModelOutageSeconds.
const DefaultModelOutage = 30 * time.Minute

// Limits end the Run. Zero means no limit, but for Steps, which is always set.
type Limits struct {
	Steps           int64 `json:"steps"`
	ModelCalls      int64 `json:"modelCalls,omitempty"`
	ToolCalls       int64 `json:"toolCalls,omitempty"`
	Tokens          int64 `json:"tokens,omitempty"`
	CostMicroUSD    int64 `json:"costMicroUSD,omitempty"`
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
	// Depth is how deep agents may call agents; 0: not at all.
	Depth int64 `json:"depth,omitempty"`
	// WaitSeconds bounds one wait for a user, and a wait that a model provider asked for.
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
	// ModelOutageSeconds bounds a wait for a model whose provider named no time; nil: the
	// default, DefaultModelOutage; 0: the runner does not wait out an outage. A missing key is waited
	// for at least two minutes.
	ModelOutageSeconds *int64 `json:"modelOutageSeconds,omitempty"`
	// Ask asks users to raise limits when steps, tokens or cost are used up, instead of ending.
	Ask bool `json:"ask,omitempty"`
}

// A Meter is what the Run has used in all attempts before this one.
type Meter = step.Meter

// Signals are what the operator says to a running runner. The file is empty
// until there is something to say.
type Signals struct {
	// Stop asks the runner to end at its next safe point.
	Stop bool `json:"stop,omitempty"`
	// Pause asks the runner to hold at its next safe point: with a durable journal
	// to leave, else to wait.
	Pause bool `json:"pause,omitempty"`
	// At is when Stop or Pause was said, in Unix seconds.
	At int64 `json:"at,omitempty"`
	// Decisions are the Decisions that the runner has not yet acted on, oldest first. SentAt is when they were last
	// written, in Unix seconds.
	Decisions []Decision `json:"decisions,omitempty"`
	SentAt    int64      `json:"said,omitempty"`
	// Children are how child Runs ended that the runner waits for, and has not yet
	// told that it knows: their requests are still pending. As many as fit into
	// MaxChildSignals, one always.
	Children []Child `json:"children,omitempty"`
}

// MaxChildSignals bounds Signals.Children, as JSON.
const MaxChildSignals = 48 << 10

// A Child is how a child Run ended, or why there is none.
type Child struct {
	// Request is the id of the Pending that asked for it.
	Request string `json:"request"`
	// Run is its name; empty: none was created, and Message has the cause.
	Run string `json:"run,omitempty"`
	// Reason, Message, Text and Output are those of its result.
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Text    string `json:"text,omitempty"`
	Output  string `json:"output,omitempty"`
	// Usage is what it used, with all below it; who asked for it is charged for
	// tokens and cost.
	Usage Usage `json:"usage"`
}

// A Decision is a Decision of a user.
type Decision struct {
	// Name is the name of the Decision object, By who made it.
	Name string `json:"name"`
	By   string `json:"by,omitempty"`
	// Request is the id of the Pending that it answers; empty for a Message, and
	// for an Answer to the only question there is.
	Request string `json:"request,omitempty"`
	// Type is Approve, Deny, Answer, Grant or Message.
	Type string `json:"type"`
	// Digest is the digest of what an Approve approves; empty: Request ends in it.
	// Scope is Call or Run, empty: Call.
	Digest string `json:"digest,omitempty"`
	Scope  string `json:"scope,omitempty"`
	// Reason is why. The model reads the reason of a Deny.
	Reason string `json:"reason,omitempty"`
	// Value is the answer or the message.
	Value string `json:"value,omitempty"`
	// Images are files below the workspace that are shown with a Message.
	Images []string `json:"images,omitempty"`
	// Steps, Tokens and CostMicroUSD are what a Grant adds to the limits.
	Steps        int64 `json:"steps,omitempty"`
	Tokens       int64 `json:"tokens,omitempty"`
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
}

// Equal reports whether two decisions are the same in every field.
func (d Decision) Equal(other Decision) bool { return reflect.DeepEqual(d, other) }

// ScopeRun is the Scope of an Approve that is good for the rest of the Run.
const ScopeRun = "Run"

// The types of a Decision.
const (
	DecisionApprove = "Approve"
	DecisionDeny    = "Deny"
	DecisionAnswer  = "Answer"
	DecisionGrant   = "Grant"
	DecisionMessage = "Message"
)

// Sandbox is where commands of the agents run.
type Sandbox struct {
	// Image is its image, for messages.
	Image string `json:"image"`
	// Hosts are the hosts that commands may reach, exact or as *.suffix.
	Hosts []string `json:"hosts,omitempty"`
	// Required refuses to work unless all of the confinement is Enforced.
	Required bool `json:"required,omitempty"`
	// Processes is the most that one command may have at once.
	Processes int `json:"processes,omitempty"`
}

// Source is the initial content of a workspace, and how it is published.
type Source struct {
	Git *Git `json:"git,omitempty"`
	// Files are folders below the workspace, in the order of FilesDir.
	Files []string `json:"files,omitempty"`
}

// Git is a repository that a workspace begins with.
type Git struct {
	URL      string `json:"url"`
	Revision string `json:"revision,omitempty"`
	Depth    int    `json:"depth,omitempty"`
	// Secret names the Secret with its credentials; empty: none.
	Secret string `json:"secret,omitempty"`
	// Publish pushes the resulting files to the branch deckhand/<run>.
	Publish bool `json:"publish,omitempty"`
}

// Traces are where a runner sends its spans and histograms.
type Traces struct {
	// Endpoint is the base URL of a collector that accepts OTLP over HTTP.
	Endpoint string `json:"endpoint"`
	// Content adds messages, arguments and results, without secrets.
	Content bool `json:"content,omitempty"`
	// Metrics adds histograms of model calls: their tokens and durations.
	Metrics bool `json:"metrics,omitempty"`
	// Root is the UID of the Run whose trace this is; empty: the Run's own.
	Root string `json:"root,omitempty"`
}
