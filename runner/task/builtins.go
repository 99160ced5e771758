package task

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
)

// A Builtin is one of the built-ins that an Agent may list in its tools.
type Builtin struct {
	// Tools has the names of its tools for models. The built-in is named after the first.
	Tools []string
	// Sandbox reports that its tools run in the sandbox. They bound the time of a call themselves.
	Sandbox bool
	// Web reports that the model chooses the host that its tools reach.
	Web bool
}

// Names of built-ins, as an Agent lists them.
const (
	BuiltinFiles       = "Files"
	BuiltinThink       = "Think"
	BuiltinHTTPRequest = "HTTPRequest"
	BuiltinWebSearch   = "WebSearch"
	BuiltinBrowse      = "Browse"
	BuiltinAsk         = "Ask"
	BuiltinTask        = "Task"
	BuiltinRecall      = "Recall"
	BuiltinShell       = "Shell"
	BuiltinPython      = "Python"
)

// Builtins has the built-ins by name. AGENTS.md describes how to add one.
var Builtins = map[string]Builtin{
	BuiltinFiles:       {Tools: []string{"Read", "Write", "Edit", "Ls", "Glob", "Grep"}},
	BuiltinThink:       {Tools: []string{"Think"}},
	BuiltinHTTPRequest: {Tools: []string{"HTTPRequest"}, Web: true},
	BuiltinWebSearch:   {Tools: []string{"WebSearch"}},
	BuiltinBrowse:      {Tools: []string{"Browse"}, Web: true},
	BuiltinAsk:         {Tools: []string{"Ask"}},
	BuiltinTask:        {Tools: []string{"Task"}},
	BuiltinRecall:      {Tools: []string{"Recall"}},
	BuiltinShell:       {Tools: []string{"Shell", "ShellOutput", "ShellKill"}, Sandbox: true},
	BuiltinPython:      {Tools: []string{"Python"}, Sandbox: true},
}

// The names of the tools that end a session: ToolFinish with an output, ToolReject because the input is refused.
const (
	ToolFinish = "Finish"
	ToolReject = "Reject"
)

// ToolsOfEveryAgent are the names of tools that every agent may have without listing them: to return an output, or to
// reject its input.
var ToolsOfEveryAgent = []string{ToolFinish, ToolReject}

// formerNames are the names of tools in Snapshots of version 1, by their current names.
var formerNames = map[string]string{
	"Think": "think", "Ask": "ask", "Task": "task", "Recall": "recall", "Finish": "finish", "Reject": "reject",
	"Shell": "shell", "ShellOutput": "shell_output", "ShellKill": "shell_kill", "Python": "python",
}

// ToolName returns the name that a tool of a built-in has in Snapshots of a version. A Run with an older Snapshot keeps
// the former names, because its policy, hooks, journal and approvals have them.
func ToolName(name string, version int) string {
	if former, has := formerNames[name]; has && version == 1 {
		return former
	}
	return name
}

// FormerNames returns the names that tools have in Snapshots of version 1, by their current names: only of the tools
// that policies may name.
func FormerNames() map[string]string {
	all := maps.Clone(formerNames)
	maps.DeleteFunc(all, func(name, _ string) bool { return slices.Contains(ToolsOfEveryAgent, name) })
	return all
}

// Renamed returns the current name of a tool in Snapshots of version 1; false: no tool had the name.
func Renamed(former string) (string, bool) {
	for is, was := range formerNames {
		if was == former {
			return is, true
		}
	}
	return "", false
}

// EndsRun reports whether a call of a tool ends the session that makes it, in a Snapshot of any
// version.
func EndsRun(tool string) bool {
	return tool == ToolFinish || tool == formerNames[ToolFinish] || IsReject(tool)
}

// IsReject reports whether a tool rejects the work, in a Snapshot of any version.
func IsReject(tool string) bool { return tool == ToolReject || tool == formerNames[ToolReject] }

// BuiltinArguments are the names of the arguments of the tools of built-ins, by the names of the
// tools.
var BuiltinArguments = map[string][]string{
	"Read":        {"limit", "offset", "path"},
	"Write":       {"content", "path"},
	"Edit":        {"new_string", "old_string", "path", "replace_all"},
	"Ls":          {"path"},
	"Glob":        {"path", "pattern"},
	"Grep":        {"fixed", "glob", "ignore_case", "limit", "output_mode", "path", "pattern"},
	"Think":       {"thought"},
	"HTTPRequest": {"body", "headers", "method", "timeoutSeconds", "url"},
	"WebSearch":   {"maxResults", "query", "topic"},
	"Browse":      {"offset", "timeoutSeconds", "url"},
	"Ask":         {"options", "question", "schema"},
	"Task":        {"agent", "input", "prompt"},
	"Recall":      {"limit", "query"},
	"Shell":       {"background", "command", "name", "timeout_seconds"},
	"ShellOutput": {"id", "wait_seconds"},
	"ShellKill":   {"id"},
	"Python":      {"args", "code", "restart", "save_as", "script", "session", "timeout_seconds"},
}

// Toolset is a set of external tools: exactly one of Stdio, HTTP and Requests.
type Toolset struct {
	Name     string       `json:"name"`
	Stdio    *StdioServer `json:"stdio,omitempty"`
	HTTP     *HTTPServer  `json:"http,omitempty"`
	Requests *Requests    `json:"requests,omitempty"`
	// Resources and Prompts become tools too; NoTools leaves the tools out.
	Resources bool `json:"resources,omitempty"`
	Prompts   bool `json:"prompts,omitempty"`
	NoTools   bool `json:"noTools,omitempty"`
	// ReadOnly and Idempotent list the tools with that effect. With TrustHints the hints of the server count, too.
	ReadOnly   []string `json:"readOnly,omitempty"`
	Idempotent []string `json:"idempotent,omitempty"`
	TrustHints bool     `json:"trustHints,omitempty"`
	// TimeoutSeconds bounds one call; 0: the default.
	TimeoutSeconds int64 `json:"timeoutSeconds,omitempty"`
	// Optional servers may be unavailable: the session then lacks their tools.
	Optional bool `json:"optional,omitempty"`
}

// StdioServer is an MCP server that is started as a program: in the sandbox, or in its own container, whose socket is
// below ServersDir.
type StdioServer struct {
	Command []string `json:"command"`
	// Env has the variables without secrets of a server in the sandbox. A server in its own container has them in its
	// container.
	Env       map[string]string `json:"env,omitempty"`
	InSandbox bool              `json:"inSandbox,omitempty"`
	// Secrets are the keys that the container has, for the redactor.
	Secrets []SecretKey `json:"secrets,omitempty"`
}

// HTTPServer is an MCP server that is reached by URL.
type HTTPServer struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers,omitempty"`
	Auth    *Auth             `json:"auth,omitempty"`
}

// Auth is how requests authenticate.
type Auth struct {
	// Type is Bearer, Header, Basic or OAuthClientCredentials.
	Type   string `json:"type"`
	Secret string `json:"secret"`
	// Key in it, for Bearer and Header; Basic has username and password,
	// OAuthClientCredentials client-id and client-secret.
	Key      string   `json:"key,omitempty"`
	Header   string   `json:"header,omitempty"`
	TokenURL string   `json:"tokenURL,omitempty"`
	Scopes   []string `json:"scopes,omitempty"`
}

// The types of Auth.
const (
	AuthBearer = "Bearer"
	AuthHeader = "Header"
	AuthBasic  = "Basic"
	AuthOAuth  = "OAuthClientCredentials"
)

// Keys returns the keys of its Secret.
func (a *Auth) Keys() []SecretKey {
	if a == nil {
		return nil
	}
	names := []string{a.Key}
	switch a.Type {
	case AuthBasic:
		names = []string{"username", "password"}
	case AuthOAuth:
		names = []string{"client-id", "client-secret"}
	}
	var out []SecretKey
	for _, name := range names {
		out = append(out, SecretKey{Secret: a.Secret, Key: name})
	}
	return out
}

// Keys returns the keys of Secrets that the runner sends for the Toolset.
func (t Toolset) Keys() []SecretKey {
	var out []SecretKey
	if t.HTTP != nil {
		out = append(out, t.HTTP.Auth.Keys()...)
	}
	if t.Requests != nil {
		out = append(out, t.Requests.Auth.Keys()...)
	}
	return out
}

// Requests are tools that are requests to an HTTP API.
type Requests struct {
	BaseURL string            `json:"baseURL"`
	Headers map[string]string `json:"headers,omitempty"`
	Auth    *Auth             `json:"auth,omitempty"`
	Tools   []RequestTool     `json:"tools"`
}

// RequestTool is a tool that is one request.
type RequestTool struct {
	Name        string            `json:"name"`
	Description string            `json:"description"`
	Method      string            `json:"method"`
	Path        string            `json:"path"`
	Query       map[string]string `json:"query,omitempty"`
	Body        json.RawMessage   `json:"body,omitempty"`
	Input       json.RawMessage   `json:"input,omitempty"`
}

// Rule decides about the calls that it matches.
type Rule struct {
	Name string `json:"name"`
	// When is a CEL expression; empty: every call.
	When string `json:"when,omitempty"`
	// Answer is Allow, Deny or Ask.
	Answer string `json:"answer"`
	Reason string `json:"reason,omitempty"`
	Approvers
}

// Approval requires a user's Decision for calls of a tool.
type Approval struct {
	When string `json:"when,omitempty"`
	Approvers
}

// Approvers are the users who may decide: the members of the groups, and the users. Without
// names they are all users who may decide at all.
type Approvers struct {
	Groups []string `json:"groups,omitempty"`
	Users  []string `json:"users,omitempty"`
}

// Restricted returns the approvers; nil if they are all users who may decide.
func (a Approvers) Restricted() *Approvers {
	if a.AreAll() {
		return nil
	}
	return &a
}

// AreAll reports whether all users who may decide are approvers.
func (a Approvers) AreAll() bool { return len(a.Groups)+len(a.Users) == 0 }

// Equal reports whether two approvers have the same names in the same order.
func (a Approvers) Equal(b Approvers) bool {
	return slices.Equal(a.Groups, b.Groups) && slices.Equal(a.Users, b.Users)
}

// UsersSize is the part of MaxAsked that a list of users takes in addition to their names, in bytes.
const UsersSize = 16

// Size returns the part of MaxAsked that the approvers take, in bytes.
func (a Approvers) Size() int {
	size := 0
	for _, name := range slices.Concat(a.Groups, a.Users) {
		size += len(name)
	}
	if len(a.Users) > 0 {
		size += UsersSize
	}
	return size
}

// Older operators send firstStep, a number of turns, in what earlier attempts were refused. It names
// no step, so it is read and dropped.

// UnmarshalJSON reads a tool, also in the form of an older operator.
func (d *DeniedTool) UnmarshalJSON(data []byte) error {
	type fields DeniedTool
	return decodeStrictly(data, &struct {
		*fields
		FirstStep int64 `json:"firstStep"`
	}{fields: (*fields)(d)})
}

// UnmarshalJSON reads a host, also in the form of an older operator.
func (h *RefusedHost) UnmarshalJSON(data []byte) error {
	type fields RefusedHost
	return decodeStrictly(data, &struct {
		*fields
		FirstStep int64 `json:"firstStep"`
	}{fields: (*fields)(h)})
}

// decodeStrictly refuses unknown fields, as a runner does everywhere in a task.
func decodeStrictly(data []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	return d.Decode(into)
}
