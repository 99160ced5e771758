package task

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Snapshot has the settings that are the same for every Run of one revision of an Agent. It contains no secret.
type Snapshot struct {
	Version int   `json:"version"`
	Agent   Agent `json:"agent"`
	// Agents are all Agents that the Agent may call in its pod, directly or through others,
	// each once, by name.
	Agents []Agent `json:"agents,omitempty"`
	// Models are all Models that the agents may use, each once.
	Models []Model `json:"models"`
	// Toolsets are all Toolsets that the agents may use, each once, by name.
	Toolsets []Toolset `json:"toolsets,omitempty"`
	// Sandbox is where commands run; nil: nowhere.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
	// Workspace is the initial content of the workspace, and how the result is published.
	Workspace Source `json:"workspace,omitzero"`
}

// An Agent has the settings of an agent.
type Agent struct {
	Name         string `json:"name"`
	Description  string `json:"description,omitempty"`
	Instructions string `json:"instructions"`
	// Models name the Agent's Model and, after it, its fallbacks in order. Empty:
	// the first of the Snapshot.
	Models []string `json:"models,omitempty"`
	// Params override the Params of each Model.
	Params step.Params `json:"params,omitzero"`
	// Routes name other Models, with their fallbacks, by their use: RouteSummarize, RouteSubagent or RouteRepair.
	Routes map[string][]string `json:"routes,omitempty"`
	// TurnRoutes are tried in order before each turn. The first route that applies names the Models that answer the
	// turn, instead of Models.
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
	// Limits bound a session of the agent that another agent opens. The limits of the Run's own session are in the
	// Task.
	Limits Limits `json:"limits,omitzero"`
	// IgnoreInstructions leaves the AGENTS.md of the workspace unread.
	IgnoreInstructions bool `json:"ignoreInstructions,omitempty"`
	// Events is Full, Steps or None.
	Events string `json:"events"`
	// Skills are the skills of the agent, by name.
	Skills []Skill `json:"skills,omitempty"`
}

// A Skill is a folder below SkillsDir. Exactly one of ConfigMap and Git is set.
type Skill struct {
	Name string `json:"name"`
	// ConfigMap names the ConfigMap with its files, which is mounted below SkillFilesDir.
	ConfigMap string `json:"configMap,omitempty"`
	// Git has the commit, and Path the folder in it; empty: the root.
	Git  *Git   `json:"git,omitempty"`
	Path string `json:"path,omitempty"`
}

// Skills returns the skills of all agents, each once, by name.
func (s Snapshot) Skills() []Skill {
	var out []Skill
	for _, a := range append([]Agent{s.Agent}, s.Agents...) {
		out = append(out, a.Skills...)
	}
	byName := func(a, b Skill) int { return strings.Compare(a.Name, b.Name) }
	slices.SortStableFunc(out, byName)
	return slices.CompactFunc(out, func(a, b Skill) bool { return a.Name == b.Name })
}

// Repositories returns the repositories of the workspace and of the skills.
func (s Snapshot) Repositories() []Git {
	var out []Git
	if s.Workspace.Git != nil {
		out = append(out, *s.Workspace.Git)
	}
	for _, skill := range s.Skills() {
		if skill.Git != nil {
			out = append(out, *skill.Git)
		}
	}
	return out
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
	// Mode is ModeRun if that agent works in a child Run; empty: in the pod.
	Mode string `json:"mode,omitempty"`
	// Description and InputSchema describe an agent with ModeRun, which is not in the Agents of the Snapshot.
	Description string          `json:"description,omitempty"`
	InputSchema json.RawMessage `json:"inputSchema,omitempty"`
	// Toolset names a Toolset of the Snapshot.
	Toolset string `json:"toolset,omitempty"`
	// Allow lists the only tools of a Toolset or a Builtin that the agent may call, Deny the tools that it may not
	// call. Both use the server's names for tools of a Toolset.
	Allow []string `json:"allow,omitempty"`
	Deny  []string `json:"deny,omitempty"`
	// Approval requires a user's Decision for its calls.
	Approval *Approval `json:"approval,omitempty"`
	// Custom names a tool that this runner was built with.
	Custom string `json:"custom,omitempty"`
	// Name is the name by which the model calls an agent; empty: the agent's own name.
	Name string `json:"name,omitempty"`
	// TimeoutSeconds bounds one call; 0 means the tool's own default.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// Hosts are the only hosts that a web tool may reach, exact or as *.suffix; empty: all public hosts.
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

// MissingKey returns the sentence about a missing key of a Secret in messages. The command line searches messages for
// it.
func MissingKey(k SecretKey) string {
	return "Secret " + k.Secret + " has no key " + k.Key
}

// A Hook is an HTTP endpoint that the runner calls at one point of an agent's work.
type Hook struct {
	Name string `json:"name"`
	// Point is BeforeSession, AfterSession, BeforeModel, AfterModel, BeforeTool or
	// AfterTool.
	Point string `json:"point"`
	URL   string `json:"url"`
	// Tools are the tools for whose calls the hook is called; empty: all tools.
	Tools          []string `json:"tools,omitempty"`
	TimeoutSeconds int64    `json:"timeoutSeconds"`
	// Ignore continues if a call of the hook fails. Otherwise a failed call denies the step.
	Ignore bool `json:"ignore,omitempty"`
	SecretKey
}

// A Model has the settings of a language model: its API, endpoint, credential and prices.
type Model struct {
	Name     string `json:"name"`
	Provider string `json:"provider"`
	// API is Responses, ChatCompletions or Messages, if the provider has it. Empty: Messages if
	// Format or the provider is Anthropic's, and otherwise ChatCompletions.
	API string `json:"api,omitempty"`
	// Format is OpenAI or Anthropic, if the provider has both APIs; empty: OpenAI.
	Format string `json:"format,omitempty"`
	// Driver is the name of a model that the custom runner was built with, for the provider Custom.
	Driver string `json:"driver,omitempty"`
	Model  string `json:"model"`
	// Deployment and APIVersion are settings of Azure.
	Deployment string            `json:"deployment,omitempty"`
	APIVersion string            `json:"apiVersion,omitempty"`
	Endpoint   string            `json:"endpoint,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"`
	// SecretKey names the key with the credential; empty: the endpoint requires none.
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
	// Changes are prices for other times. The last change that applies at the time of a request replaces these prices
	// and their tiers.
	Changes []PriceChange `json:"changes,omitempty"`
}

// PriceTier has the prices of requests with more than Above input tokens.
type PriceTier struct {
	Above      int64 `json:"above"`
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
}

// PriceChange has the prices from a day on (2027-01-01, UTC), or of each day from Start until before End (01:00, UTC).
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

// A Task has the settings of one attempt of a Run.
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
	// Labels are the labels of the Run, for rules of a policy.
	Labels map[string]string `json:"labels,omitempty"`
	Limits Limits            `json:"limits"`
	Meter  Meter             `json:"meter,omitzero"`
	// Refused has the refused connections and calls of all earlier attempts.
	Refused *Refused `json:"refused,omitempty"`
	// Retry is why the previous attempt ended; empty for the first.
	Retry string `json:"retry,omitempty"`
	// Continue is the Run whose session this one continues; nil: none.
	Continue *Continue `json:"continue,omitempty"`
	// Durable is true if the journal is on a volume, and exists after the pod.
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
	// Workspace is which files the agent has; empty: ContinueCopy.
	Workspace ContinueWorkspace `json:"workspace,omitempty"`
}

// ContinueWorkspace is which files a Run has that continues another.
type ContinueWorkspace string

const (
	// ContinueCopy is a copy of the files of that Run.
	ContinueCopy ContinueWorkspace = "Copy"
	// ContinueShare is the files of that Run themselves.
	ContinueShare ContinueWorkspace = "Share"
	// ContinueFresh is the files that the agent starts with.
	ContinueFresh ContinueWorkspace = "Fresh"
)

// DefaultModelOutage is the default of Limits.ModelOutageSeconds.
const DefaultModelOutage = 30 * time.Minute

// Limits bound a Run or a session. 0 means no limit, except for Steps, which is always set.
type Limits struct {
	Steps           int64 `json:"steps"`
	ModelCalls      int64 `json:"modelCalls,omitempty"`
	ToolCalls       int64 `json:"toolCalls,omitempty"`
	Tokens          int64 `json:"tokens,omitempty"`
	CostMicroUSD    int64 `json:"costMicroUSD,omitempty"`
	DurationSeconds int64 `json:"durationSeconds,omitempty"`
	// Depth is how deep calls of agents by agents may be nested; 0: an agent may call none.
	Depth int64 `json:"depth,omitempty"`
	// WaitSeconds bounds one wait for a user, and one wait until a time that a model provider named.
	WaitSeconds int64 `json:"waitSeconds,omitempty"`
	// ModelOutageSeconds bounds a wait for a model whose provider named no time; nil: the
	// default, DefaultModelOutage; 0: the runner does not wait out an outage. A missing key is waited
	// for at least two minutes.
	ModelOutageSeconds *int64 `json:"modelOutageSeconds,omitempty"`
	// Ask asks users to raise limits when steps, tokens or cost are used up, instead of ending.
	Ask bool `json:"ask,omitempty"`
}

// A Meter is the usage of a Run. In a Task it is the usage of all earlier attempts.
type Meter = step.Meter

// Signals are the operator's messages to a running runner. The file is empty until there is one.
type Signals struct {
	// Stop asks the runner to end at its next safe point.
	Stop bool `json:"stop,omitempty"`
	// Pause asks the runner to pause at its next safe point: it ends if the journal is durable, and otherwise waits.
	Pause bool `json:"pause,omitempty"`
	// At is the time of Stop or Pause, in Unix seconds.
	At int64 `json:"at,omitempty"`
	// Decisions are the Decisions that the runner has not yet acted on, oldest first. SentAt is when they were last
	// written, in Unix seconds.
	Decisions []Decision `json:"decisions,omitempty"`
	SentAt    int64      `json:"said,omitempty"`
	// Children are the results of ended child Runs whose requests are still in Progress.Pending, because the runner has
	// not recorded them yet. They are as many as fit into MaxChildSignals, and at least one.
	Children []Child `json:"children,omitempty"`
}

// MaxChildSignals bounds Signals.Children, as JSON.
const MaxChildSignals = 48 << 10

// A Child is the result of a child Run, or the cause why it was not created.
type Child struct {
	// Request is the id of the Pending that requested the child Run.
	Request string `json:"request"`
	// Run is the name of the child Run; empty: it was not created, and Message has the cause.
	Run string `json:"run,omitempty"`
	// Reason, Message, Text and Output are the fields of its result.
	Reason  Reason `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Text    string `json:"text,omitempty"`
	Output  string `json:"output,omitempty"`
	// Usage is the usage of the child Run and of all Runs below it. Its tokens and cost are charged to the Run that
	// requested it.
	Usage Usage `json:"usage"`
}

// A Decision is a Decision of a user.
type Decision struct {
	// Name is the name of the Decision object, By the name of the user who created it.
	Name string `json:"name"`
	By   string `json:"by,omitempty"`
	// Request is the id of the Pending that the Decision answers; empty for a Message, and for an Answer to the only
	// open question.
	Request string `json:"request,omitempty"`
	// Type is Approve, Deny, Answer, Grant or Message.
	Type string `json:"type"`
	// Digest is the digest of the call that an Approve approves; empty: Request ends in the digest. Scope is Call or
	// Run; empty: Call.
	Digest string `json:"digest,omitempty"`
	Scope  string `json:"scope,omitempty"`
	// Reason is the user's reason. The model reads the reason of a Deny.
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

// ScopeRun is the Scope of an Approve that also approves later calls of the Run.
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
	// Image is the image of the sandbox, for messages.
	Image string `json:"image"`
	// Hosts are the hosts that commands may reach, exact or as *.suffix.
	Hosts []string `json:"hosts,omitempty"`
	// Required ends the attempt before its first turn unless all parts of the confinement are shown to be Enforced.
	Required bool `json:"required,omitempty"`
	// Processes is the maximum number of processes of one command.
	Processes int `json:"processes,omitempty"`
}

// Source is the initial content of a workspace, and how it is published.
type Source struct {
	Git *Git `json:"git,omitempty"`
	// Files are folders below the workspace, in the order of FilesDir.
	Files []string `json:"files,omitempty"`
}

// Git is the repository of the initial workspace, or of a skill.
type Git struct {
	URL      string `json:"url"`
	Revision string `json:"revision,omitempty"`
	Depth    int    `json:"depth,omitempty"`
	// Secret names the Secret with its credentials; empty: none.
	Secret string `json:"secret,omitempty"`
	// Publish pushes the resulting files to the branch deckhand/<run>, or to the branch of the Run that is continued.
	Publish bool `json:"publish,omitempty"`
}

// Traces configure where a runner sends spans and histograms.
type Traces struct {
	// Endpoint is the base URL of a collector that accepts OTLP over HTTP.
	Endpoint string `json:"endpoint"`
	// Content adds messages, arguments and results to spans, without secrets.
	Content bool `json:"content,omitempty"`
	// Metrics adds histograms of model calls: their tokens and durations.
	Metrics bool `json:"metrics,omitempty"`
	// Root is the UID of the Run to whose trace the spans belong; empty: this Run.
	Root string `json:"root,omitempty"`
}
