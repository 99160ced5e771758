package v1alpha1

// Tool is one entry of the tools of an agent.
//
// +kubebuilder:validation:XValidation:rule="[has(self.builtin), has(self.agent), has(self.toolset), has(self.custom)].exists_one(x, x)",message="a tool is one of builtin, agent, toolset and custom: write - builtin: Files, or - agent: reviewer"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || has(self.agent) || has(self.custom)",message="name is for agent and custom: the names of built-in tools are fixed, those of a toolset begin with its name"
// +kubebuilder:validation:XValidation:rule="(!has(self.allow) && !has(self.deny)) || has(self.toolset) || (has(self.builtin) && self.builtin == 'Files')",message="allow and deny are for entries with several tools: toolset and builtin: Files. To leave out one tool, remove its entry"
// +kubebuilder:validation:XValidation:rule="!has(self.allow) || !has(self.builtin) || self.builtin != 'Files' || self.allow.all(n, n in ['Read', 'Write', 'Edit', 'Ls', 'Glob', 'Grep'])",message="allow names a tool that Files does not have: its tools are Read, Write, Edit, Ls, Glob and Grep"
// +kubebuilder:validation:XValidation:rule="!has(self.deny) || !has(self.builtin) || self.builtin != 'Files' || self.deny.all(n, n in ['Read', 'Write', 'Edit', 'Ls', 'Glob', 'Grep'])",message="deny names a tool that Files does not have: its tools are Read, Write, Edit, Ls, Glob and Grep"
// +kubebuilder:validation:XValidation:rule="!has(self.allow) || !has(self.deny)",message="allow names the only tools that the agent may call, deny the tools that it may not call: use one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.toolset)",message="the timeout of a toolset is its own: set spec.timeout of the Toolset"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.name) || self.agent.matches('^[a-zA-Z0-9_-]{1,64}$')",message="models take no tool of that name: add a name of at most 64 letters, digits, _ and -"
// +kubebuilder:validation:XValidation:rule="!has(self.httpRequest) || (has(self.builtin) && self.builtin == 'HTTPRequest')",message="httpRequest is for the entry - builtin: HTTPRequest: move it there, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.browse) || (has(self.builtin) && self.builtin == 'Browse')",message="browse is for the entry - builtin: Browse: move it there, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.webSearch) || (has(self.builtin) && self.builtin == 'WebSearch')",message="webSearch is for the entry - builtin: WebSearch: move it there, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.delegation) || has(self.agent)",message="delegation is for entries that name an Agent: write - agent: reviewer, or remove delegation"
// +kubebuilder:validation:XValidation:rule="!has(self.settings) || has(self.custom)",message="settings are for custom tools: write - custom: crm, or remove settings"
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

	// agent names another Agent in the same namespace that the agent may call. While it does
	// not exist, the Agent is not Ready, reason AgentNotFound.
	// +optional
	Agent ObjectName `json:"agent,omitempty"`

	// toolset names the Toolset, in the same namespace, whose tools the agent may
	// call. While it does not exist the Agent is not Ready, reason ToolsetNotFound.
	// +optional
	Toolset ObjectName `json:"toolset,omitempty"`

	// allow names the only tools of a toolset, or of Files, that the agent may call:
	// allow: [Read, Ls, Glob, Grep] makes an agent that only reads files. Tools of a
	// toolset are named as the server names them; if the server does not offer one, a
	// Run ends with reason Misconfigured. Default: all.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Allow []string `json:"allow,omitempty"`

	// deny names the tools of a toolset, or of Files, that the agent may not call.
	// Default: none.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Deny []string `json:"deny,omitempty"`

	// approval is the short form of a rule at the end of spec.policy for the tools of
	// this entry, with answer: Ask. A rule of spec.policy that matches a call is
	// applied instead.
	// +optional
	Approval *Approval `json:"approval,omitempty"`

	// custom names a tool of a custom runner. If the runner does not have it, a Run ends
	// with reason Misconfigured.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be the name of a tool: at most 64 letters, digits, _ and -"
	// +optional
	Custom string `json:"custom,omitempty"`

	// name is what the model calls an agent or a custom tool. Default: its own.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be a name that models take: at most 64 letters, digits, _ and -"
	// +optional
	Name string `json:"name,omitempty"`

	// timeout bounds one call. Default 120s, at most 6h; an agent has none.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || (duration(string(self)) > duration('0s') && duration(string(self)) <= duration('6h'))",message="must be more than 0s and at most 6h"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// httpRequest holds what only the built-in tool HTTPRequest has.
	// +optional
	HTTPRequest *HTTPRequestTool `json:"httpRequest,omitempty"`

	// browse holds what only the built-in tool Browse has.
	// +optional
	Browse *BrowseTool `json:"browse,omitempty"`

	// webSearch holds what only the built-in tool WebSearch has.
	// +optional
	WebSearch *WebSearchTool `json:"webSearch,omitempty"`

	// delegation says how another Agent works for this one.
	// +optional
	Delegation *Delegation `json:"delegation,omitempty"`

	// settings are passed to a custom tool.
	// +optional
	Settings *CustomToolSettings `json:"settings,omitempty"`
}

// HTTPRequestTool holds what only the built-in tool HTTPRequest has.
type HTTPRequestTool struct {
	// hosts are the only hosts that the tool reaches, at most 32: exact names, or
	// *.example.com for every host below example.com. Default: every public host. A
	// host inside the cluster is reached only if it is listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Hosts []Host `json:"hosts,omitempty"`
}

// BrowseTool holds what only the built-in tool Browse has.
type BrowseTool struct {
	// hosts are the only hosts that the tool reaches, at most 32: exact names, or
	// *.example.com for every host below example.com. Default: every public host. A
	// host inside the cluster is reached only if it is listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Hosts []Host `json:"hosts,omitempty"`
}

// WebSearchTool holds what only the built-in tool WebSearch has.
type WebSearchTool struct {
	// endpoint is the base URL of a search API compatible with Tavily. Default: the URL of
	// Tavily.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// apiKeySecretRef names the key of a Secret that holds the API key of the search.
	// Default: requests carry no API key. While the Secret or the key is missing, a
	// Run waits with reason SecretMissing.
	// +optional
	APIKeySecretRef *SecretKeyRef `json:"apiKeySecretRef,omitempty"`
}

// CustomToolSettings are passed to a custom tool, which decides what they mean.
type CustomToolSettings struct {
	// endpoint is a base URL.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// apiKeySecretRef names the key of a Secret that holds an API key. While the
	// Secret or the key is missing, a Run waits with reason SecretMissing.
	// +optional
	APIKeySecretRef *SecretKeyRef `json:"apiKeySecretRef,omitempty"`
}

// Delegation says how another Agent works for this one.
type Delegation struct {
	// mode is where the other Agent works. Pod: in the pod of the Run, on the same
	// files and within the same limits. Run: in a child Run with its own pod, files
	// and sandbox; this Run waits for its result. The tokens and the cost of the
	// child count against limits.tokens and limits.cost of this Run; the child may
	// use what its own limits say, or a quarter of these. Its input has at most
	// 4 KiB. Default Pod.
	// +kubebuilder:validation:Enum=Pod;Run
	// +optional
	Mode AgentMode `json:"mode,omitempty"`
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

// Hook is an HTTP endpoint that the runner calls at one point of an agent's work. It can
// refuse or change what is about to happen, or change the result. Its answer is recorded
// with the step, so a completed step never calls it again.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tools) || self.point in ['BeforeTool', 'AfterTool']",message="tools are for the points BeforeTool and AfterTool"
type Hook struct {
	// name of the hook, for messages and the log.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -"
	// +required
	Name string `json:"name"`

	// point is when the hook is called: BeforeSession and AfterSession once for each
	// session, BeforeModel and AfterModel at each turn, BeforeTool and AfterTool at each
	// tool call.
	// +kubebuilder:validation:Enum=BeforeSession;AfterSession;BeforeModel;AfterModel;BeforeTool;AfterTool
	// +required
	Point HookPoint `json:"point"`

	// url is the endpoint, called with POST.
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

	// timeout bounds one call of the hook. Default 5s, at most 30s.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || (duration(string(self)) > duration('0s') && duration(string(self)) <= duration('30s'))",message="must be more than 0s and at most 30s"
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
