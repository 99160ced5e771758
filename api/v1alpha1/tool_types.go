package v1alpha1

// Tool is one thing that an agent may do.
//
// +kubebuilder:validation:XValidation:rule="[has(self.builtin), has(self.agent), has(self.toolset), has(self.custom)].exists_one(x, x)",message="a tool is one of builtin, agent, toolset and custom: write - builtin: Files, or - agent: reviewer"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || has(self.agent) || has(self.custom)",message="name is for agent and custom: the names of built-in tools are fixed, those of a toolset begin with its name"
// +kubebuilder:validation:XValidation:rule="(!has(self.allow) && !has(self.deny)) || has(self.toolset)",message="allow and deny are for toolset"
// +kubebuilder:validation:XValidation:rule="!has(self.allow) || !has(self.deny)",message="allow names all that the agent may call, deny all that it may not: use one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.toolset)",message="the timeout of a toolset is its own: set spec.timeout of the Toolset"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.name) || self.agent.matches('^[a-zA-Z0-9_-]{1,64}$')",message="models take no tool of that name: add a name of at most 64 letters, digits, _ and -"
// +kubebuilder:validation:XValidation:rule="!has(self.mode) || has(self.agent)",message="mode is for agent"
// +kubebuilder:validation:XValidation:rule="!has(self.hosts) || (has(self.builtin) && self.builtin in ['HTTPRequest', 'Browse'])",message="hosts are for the built-in tools HTTPRequest and Browse"
// +kubebuilder:validation:XValidation:rule="(!has(self.endpoint) && !has(self.apiKeySecretRef)) || (has(self.builtin) && self.builtin == 'WebSearch') || has(self.custom)",message="endpoint and apiKeySecretRef are for the built-in tool WebSearch and for custom tools"
type Tool struct {
	// builtin is a tool that comes with Deckhand. Files: Read, Write, Edit, Ls,
	// Glob and Grep in the workspace. Think: a place to think in between calls, for
	// models that do not by themselves. HTTPRequest: requests to an HTTP API.
	// WebSearch: a search of the web. Browse: a page of the web as Markdown. Ask: a
	// question to a person, which waits for the answer. Task: a part of the work
	// done by the agent itself, in a session of its own. Recall: a search of what
	// is remembered and of earlier sessions. Shell: commands in the sandbox. Python:
	// code in an interpreter there that keeps its variables. Both need spec.sandbox;
	// without it the Agent is not Ready, reason SandboxMissing.
	// +kubebuilder:validation:Enum=Files;Think;HTTPRequest;WebSearch;Browse;Ask;Task;Recall;Shell;Python
	// +optional
	Builtin BuiltinTool `json:"builtin,omitempty"`

	// agent names another Agent, in the same namespace, that this one may give work
	// to. While it does not exist this one is not Ready, reason AgentNotFound.
	// +optional
	Agent ObjectName `json:"agent,omitempty"`

	// toolset names the Toolset, in the same namespace, whose tools the agent may
	// call. While it does not exist the Agent is not Ready, reason ToolsetNotFound.
	// +optional
	Toolset ObjectName `json:"toolset,omitempty"`

	// allow names the only tools of the toolset that the agent may call, as the
	// server calls them. One that the server does not offer ends a Run with reason
	// Misconfigured. Default: all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Allow []string `json:"allow,omitempty"`

	// deny names tools of the toolset that the agent may not call.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Deny []string `json:"deny,omitempty"`

	// approval has a person decide on calls before they are made. Rules of
	// spec.policy come first.
	// +optional
	Approval *Approval `json:"approval,omitempty"`

	// custom names a tool that a runner of your own was built with. One that it
	// does not have ends a Run with reason Misconfigured.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be the name of a tool: at most 64 letters, digits, _ and -"
	// +optional
	Custom string `json:"custom,omitempty"`

	// name is what the model calls an agent or a custom tool. Default: its own.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be a name that models take: at most 64 letters, digits, _ and -"
	// +optional
	Name string `json:"name,omitempty"`

	// mode is where another agent works: Pod, in the pod of the Run, on the same
	// files and within the same limits; or Run, in a child Run of its own, with its
	// own pod, files and sandbox, of which this one waits for the result. What the
	// child uses counts against limits.tokens and limits.cost of this one; it may use
	// what its own limits say, or a quarter of these. What it is
	// given has at most 4 KiB. Default Pod.
	// +kubebuilder:validation:Enum=Pod;Run
	// +optional
	Mode AgentMode `json:"mode,omitempty"`

	// timeout bounds one call. Default 120s, at most 6h; an agent has none.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('6h')",message="must be more than 0s and at most 6h"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// hosts are the only ones that HTTPRequest and Browse reach, at most 32: exact,
	// or *.example.com for all below. Default: every public one. Hosts inside the
	// cluster are reached only when they are listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Hosts []Host `json:"hosts,omitempty"`

	// endpoint is the base URL of the search, or what a custom tool makes of it.
	// Default: that of Tavily, whose API the search speaks.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// apiKeySecretRef names the key of a Secret that holds the API key of the search,
	// or of a custom tool. While the Secret or the key is missing, a Run waits with
	// reason SecretMissing.
	// +optional
	APIKeySecretRef *SecretKeyRef `json:"apiKeySecretRef,omitempty"`
}

// BuiltinTool names a tool that comes with Deckhand.
type BuiltinTool string

// The built-in tools.
const (
	BuiltinFiles       BuiltinTool = "Files"
	BuiltinThink       BuiltinTool = "Think"
	BuiltinHTTPRequest BuiltinTool = "HTTPRequest"
	BuiltinWebSearch   BuiltinTool = "WebSearch"
	BuiltinBrowse      BuiltinTool = "Browse"
	BuiltinAsk         BuiltinTool = "Ask"
	BuiltinTask        BuiltinTool = "Task"
	BuiltinRecall      BuiltinTool = "Recall"
	BuiltinShell       BuiltinTool = "Shell"
	BuiltinPython      BuiltinTool = "Python"
)

// AgentMode is where another agent works.
type AgentMode string

// The modes of an agent as a tool.
const (
	AgentModePod AgentMode = "Pod"
	AgentModeRun AgentMode = "Run"
)

// Host is the name of a host, or of all hosts below a domain.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a host in lower case without scheme and port: write api.example.com or *.example.com"
type Host string

// Hook is asked over HTTP at one point of an agent's work. It answers whether
// to go on, and may change what is about to happen or what came of it. What it
// answered is kept with the step, so a step that is done is never asked again.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tools) || self.point in ['BeforeTool', 'AfterTool']",message="tools are for the points BeforeTool and AfterTool"
type Hook struct {
	// name of the hook, for messages and the log.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -"
	// +required
	Name string `json:"name"`

	// point is when it is asked: BeforeSession and AfterSession once a session, that
	// of the Run or of a call by another agent; BeforeModel and AfterModel at each
	// turn, BeforeTool and AfterTool at each call.
	// +kubebuilder:validation:Enum=BeforeSession;AfterSession;BeforeModel;AfterModel;BeforeTool;AfterTool
	// +required
	Point HookPoint `json:"point"`

	// url is what is asked, by POST.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/path"
	// +required
	URL string `json:"url"`

	// tools narrow BeforeTool and AfterTool to the tools that the model calls by
	// these names. Default: all.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +optional
	Tools []ToolName `json:"tools,omitempty"`

	// timeout bounds one question. Default 5s, at most 30s.
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('30s')",message="must be more than 0s and at most 30s"
	// +optional
	Timeout Duration `json:"timeout,omitempty"`

	// failurePolicy is what follows when the hook cannot be asked or answers
	// nonsense. Fail: a call is not made, or its result withheld; before or after
	// anything else it ends the attempt, reason ToolUnavailable, which is tried
	// again. Ignore: the work goes on. Default Fail.
	// +kubebuilder:validation:Enum=Fail;Ignore
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// tokenSecretRef names the key of a Secret that holds the bearer token. Default:
	// requests carry no token. While the Secret or the key is missing, a Run waits
	// with reason SecretMissing.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`
}

// ToolName is what a model calls a tool.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be a tool as the model calls it: write Write or HTTPRequest"
type ToolName string

// HookPoint is when a hook is asked.
type HookPoint string

// The points of hooks.
const (
	BeforeSession HookPoint = "BeforeSession"
	AfterSession  HookPoint = "AfterSession"
	BeforeModel   HookPoint = "BeforeModel"
	AfterModel    HookPoint = "AfterModel"
	BeforeTool    HookPoint = "BeforeTool"
	AfterTool     HookPoint = "AfterTool"
)

// FailurePolicy is what follows when a hook cannot be asked.
type FailurePolicy string

// The failure policies.
const (
	FailurePolicyFail   FailurePolicy = "Fail"
	FailurePolicyIgnore FailurePolicy = "Ignore"
)
