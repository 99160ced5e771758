package v1alpha1

// Tool is an entry of spec.tools. Exactly one of builtin, agent, toolset and custom is
// required.
//
// +kubebuilder:validation:XValidation:rule="[has(self.builtin), has(self.agent), has(self.toolset), has(self.custom)].exists_one(x, x)",messageExpression="'exactly one of builtin, agent, toolset and custom is required: ' + (has(self.builtin) || has(self.agent) || has(self.toolset) || has(self.custom) ? 'remove the others' : 'write - builtin: Files, or - agent: reviewer')"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || has(self.agent) || has(self.custom)",message="name is only allowed for agent and custom: remove it, because the names of other tools cannot be changed"
// +kubebuilder:validation:XValidation:rule="(!has(self.allow) && !has(self.deny)) || has(self.toolset) || (has(self.builtin) && self.builtin == 'Files')",message="allow and deny are only allowed for toolset and builtin: Files: remove them, or remove the entry to leave out its tool"
// +kubebuilder:validation:XValidation:rule="!has(self.allow) || !has(self.builtin) || self.builtin != 'Files' || self.allow.all(n, n in ['Read', 'Write', 'Edit', 'Ls', 'Glob', 'Grep'])",message="allow names a tool that Files does not have: its tools are Read, Write, Edit, Ls, Glob and Grep"
// +kubebuilder:validation:XValidation:rule="!has(self.deny) || !has(self.builtin) || self.builtin != 'Files' || self.deny.all(n, n in ['Read', 'Write', 'Edit', 'Ls', 'Glob', 'Grep'])",message="deny names a tool that Files does not have: its tools are Read, Write, Edit, Ls, Glob and Grep"
// +kubebuilder:validation:XValidation:rule="!has(self.allow) || !has(self.deny)",message="allow and deny are not allowed together: remove one of the two"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.toolset)",message="timeout is not allowed for toolset: set spec.timeout of the Toolset"
// +kubebuilder:validation:XValidation:rule="!has(self.timeout) || !has(self.agent)",message="timeout is not allowed for agent: remove it, and set limits.duration of that Agent"
// +kubebuilder:validation:XValidation:rule="!has(self.agent) || has(self.name) || self.agent.matches('^[a-zA-Z0-9_-]{1,64}$')",message="the name of the Agent is not a valid name of a tool: add name, with at most 64 letters, digits, _ and -"
// +kubebuilder:validation:XValidation:rule="!has(self.httpRequest) || (has(self.builtin) && self.builtin == 'HTTPRequest')",message="httpRequest is only allowed for builtin: HTTPRequest: move it there, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.browse) || (has(self.builtin) && self.builtin == 'Browse')",message="browse is only allowed for builtin: Browse: move it there, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.webSearch) || (has(self.builtin) && self.builtin == 'WebSearch')",message="webSearch is only allowed for builtin: WebSearch: move it there, or remove it"
// +kubebuilder:validation:XValidation:rule="!has(self.delegation) || has(self.agent)",message="delegation is only allowed for agent: write - agent: reviewer, or remove delegation"
// +kubebuilder:validation:XValidation:rule="!has(self.settings) || has(self.custom)",message="settings is only allowed for custom: write - custom: crm, or remove settings"
type Tool struct {
	// builtin is a tool of Deckhand:
	//   - Files: Read, Write, Edit, Ls, Glob and Grep in the workspace.
	//   - Shell: commands in the sandbox. Needs spec.sandbox.
	//   - Python: code in an interpreter in the sandbox that keeps its variables. Needs
	//     spec.sandbox.
	//   - HTTPRequest: a request to an HTTP API.
	//   - WebSearch: a web search.
	//   - Browse: a web page as Markdown.
	//   - Ask: a question to a user. The Run waits for the answer, reason AwaitingAnswer.
	//   - Task: a part of the work in a new session of the same agent.
	//   - Recall: a search of the agent's notes and of earlier sessions.
	//   - Think: writing down a thought, for models without reasoning.
	//
	// Without spec.sandbox an Agent with Shell or Python is not Ready, reason SandboxMissing.
	// +kubebuilder:validation:Enum=Files;Think;HTTPRequest;WebSearch;Browse;Ask;Task;Recall;Shell;Python
	// +optional
	Builtin BuiltinTool `json:"builtin,omitempty"`

	// agent is the name of another Agent, in the same namespace, that the model may call as a
	// tool. While it does not exist, this Agent is not Ready, reason NotFound.
	// +optional
	Agent ObjectName `json:"agent,omitempty"`

	// toolset is the name of the Toolset, in the same namespace, whose tools the model may
	// call. While it does not exist, the Agent is not Ready, reason NotFound.
	// +optional
	Toolset ObjectName `json:"toolset,omitempty"`

	// allow has the names of the only tools of a toolset or of builtin: Files that the model
	// may call. For example, allow: [Read, Ls, Glob, Grep] lets the agent read files but not
	// write them. Tools of an MCP server have the names that the server gives them; if the
	// server does not have one, a Run ends with reason Misconfigured. Default: all tools.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Allow []string `json:"allow,omitempty"`

	// deny has the names of tools of a toolset or of builtin: Files that the model may not
	// call. Default: none.
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Deny []string `json:"deny,omitempty"`

	// approval makes calls of these tools wait until a user approves them with a Decision. It
	// is the same as a rule with answer: Ask at the end of spec.policy: if a rule of
	// spec.policy matches a call, that rule decides instead.
	// +optional
	Approval *Approval `json:"approval,omitempty"`

	// custom is the name of a tool that is built into a custom runner
	// (podTemplate.runnerImage). If the runner does not have it, a Run ends with reason
	// Misconfigured.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be the name of a tool: at most 64 letters, digits, _ and -"
	// +optional
	Custom string `json:"custom,omitempty"`

	// name is the name by which the model calls an agent or a custom tool. Default: the name of
	// the Agent or of the custom tool.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be a valid name of a tool: at most 64 letters, digits, _ and -"
	// +optional
	Name string `json:"name,omitempty"`

	// timeout is the maximum time of one call, at most 6h. A call that takes longer is
	// cancelled, and the model gets an error. Default 120s. Not for toolset, which has its own,
	// and not for agent.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || (duration(self) > duration('0s') && duration(self) <= duration('6h'))",message="must be more than 0s and at most 6h: write 10m, or remove it"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// httpRequest has settings for builtin: HTTPRequest.
	// +optional
	HTTPRequest *WebTool `json:"httpRequest,omitempty"`

	// browse has settings for builtin: Browse.
	// +optional
	Browse *WebTool `json:"browse,omitempty"`

	// webSearch has settings for builtin: WebSearch.
	// +optional
	WebSearch *WebSearchTool `json:"webSearch,omitempty"`

	// delegation is where the other Agent of an agent entry works.
	// +optional
	Delegation *Delegation `json:"delegation,omitempty"`

	// settings are passed to a custom tool.
	// +optional
	Settings *CustomToolSettings `json:"settings,omitempty"`
}

// WebTool has settings for a built-in whose model chooses the host: HTTPRequest or Browse.
type WebTool struct {
	// hosts are the only hosts that the tool may reach, at most 32: exact names, or
	// *.example.com for every host below example.com. Default: all public hosts. A host in the
	// cluster is reached only if it is listed.
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="hosts is empty, which would allow all public hosts: list a host, or remove hosts"
	// +optional
	Hosts []Host `json:"hosts,omitempty"`
}

// WebSearchTool has settings for builtin: WebSearch.
type WebSearchTool struct {
	// endpoint is the base URL of Tavily or of a search API that is compatible with it.
	// Default: Tavily.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must have no credential before the host: write the credential into a Secret"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// apiKeySecretRef is the key of a Secret, in the same namespace, with the API key of the
	// search. While the Secret or the key is missing, a Run waits with reason SecretMissing.
	// Default: requests have no API key.
	// +optional
	APIKeySecretRef *SecretKeyRef `json:"apiKeySecretRef,omitempty"`
}

// CustomToolSettings are passed to a custom tool, which defines what they mean.
type CustomToolSettings struct {
	// endpoint is a base URL.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must have no credential before the host: write the credential into a Secret"
	// +optional
	Endpoint string `json:"endpoint,omitempty"`

	// apiKeySecretRef is the key of a Secret, in the same namespace, with an API key. While the
	// Secret or the key is missing, a Run waits with reason SecretMissing.
	// +optional
	APIKeySecretRef *SecretKeyRef `json:"apiKeySecretRef,omitempty"`
}

// Delegation is where another Agent works for this one.
type Delegation struct {
	// mode is Pod or Run. Pod: the other Agent works in the pod of this Run, with the same
	// files and within the same limits. Run: it works in a child Run with its own pod, files
	// and sandbox, and this Run waits for the result, reason AwaitingChild. Default Pod.
	//
	// With Run, the input of the child Run has at most 4 KiB. Its tokens and cost count against
	// limits.tokens and limits.cost of this Run: as much as its own limits allow is reserved
	// when it starts, or a quarter of the limit of this Run if it has none.
	// +kubebuilder:validation:Enum=Pod;Run
	// +optional
	Mode AgentMode `json:"mode,omitempty"`
}

// BuiltinTool is a tool of Deckhand.
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

// AgentMode is where another Agent works.
type AgentMode string

// The modes of an agent as a tool.
const (
	AgentModePod AgentMode = "Pod"
	AgentModeRun AgentMode = "Run"
)

// Host is the name of a host, or *.example.com for every host below example.com.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="must be a host in lower case without scheme and port: write api.example.com or *.example.com"
type Host string

// Hook is an HTTP endpoint that the runner calls at one point of an agent's work. It can change
// or refuse what is about to happen, or change a result. Its answer is recorded with the step:
// a completed step does not call it again.
//
// +kubebuilder:validation:XValidation:rule="!has(self.tools) || self.point in ['BeforeTool', 'AfterTool']",message="tools is only allowed for the points BeforeTool and AfterTool: write point: BeforeTool, or remove tools"
type Hook struct {
	// name is the name of the hook in messages and in the log.
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be lower-case letters, digits and -"
	// +required
	Name string `json:"name"`

	// point is when the hook is called: BeforeSession and AfterSession once for each session,
	// BeforeModel and AfterModel at each turn, BeforeTool and AfterTool at each tool call.
	// +kubebuilder:validation:Enum=BeforeSession;AfterSession;BeforeModel;AfterModel;BeforeTool;AfterTool
	// +required
	Point HookPoint `json:"point"`

	// url is the endpoint. The runner sends a POST request with JSON.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/path"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must have no credential before the host: write the credential into a Secret"
	// +required
	URL string `json:"url"`

	// tools restricts BeforeTool and AfterTool to tools with these names, as the model calls
	// them. A tool that the agent does not have makes the Agent not Ready, reason
	// Invalid. Default: all tools.
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:XValidation:rule="size(self) > 0",message="tools is empty, which would mean all tools: list a tool, or remove tools"
	// +optional
	Tools []ToolName `json:"tools,omitempty"`

	// timeout is the maximum time of one call of the hook, at most 30s. Default 5s.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || (duration(self) > duration('0s') && duration(self) <= duration('30s'))",message="must be more than 0s and at most 30s: write 5s, or remove it"
	// +optional
	Timeout Duration `json:"timeout,omitempty"`

	// failurePolicy is what happens if the hook does not answer within timeout or its answer is
	// invalid. Fail: at a tool call, the call is not made or its result is withheld; at another
	// point, the attempt ends with reason ToolUnavailable and is retried. Ignore: the work
	// continues without the hook. Default Fail.
	// +kubebuilder:validation:Enum=Fail;Ignore
	// +optional
	FailurePolicy FailurePolicy `json:"failurePolicy,omitempty"`

	// tokenSecretRef is the key of a Secret, in the same namespace, with a bearer token. While
	// the Secret or the key is missing, a Run waits with reason SecretMissing. Default:
	// requests have no token.
	// +optional
	TokenSecretRef *SecretKeyRef `json:"tokenSecretRef,omitempty"`
}

// ToolName is the name by which a model calls a tool.
//
// +kubebuilder:validation:MaxLength=64
// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,64}$')",message="must be the name of a tool as the model calls it: write Write or HTTPRequest"
type ToolName string

// HookPoint is when a hook is called.
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

// FailurePolicy is what happens when a hook fails.
type FailurePolicy string

// The failure policies.
const (
	FailurePolicyFail   FailurePolicy = "Fail"
	FailurePolicyIgnore FailurePolicy = "Ignore"
)
