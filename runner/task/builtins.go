package task

// A Builtin is one of the built-ins that an Agent may list in its tools.
type Builtin struct {
	// Tools has the names by which a model calls its tools. The first is the tool that the
	// built-in is named after.
	Tools []string
	// Sandbox says that its tools run in the sandbox. They bound the time of a call
	// themselves.
	Sandbox bool
	// Web says that the model chooses the host that its tools reach.
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

// Builtins has the built-ins by name. AGENTS.md says how to add one.
var Builtins = map[string]Builtin{
	BuiltinFiles:       {Tools: []string{"Read", "Write", "Edit", "Ls", "Glob", "Grep"}},
	BuiltinThink:       {Tools: []string{"think"}},
	BuiltinHTTPRequest: {Tools: []string{"HTTPRequest"}, Web: true},
	BuiltinWebSearch:   {Tools: []string{"WebSearch"}},
	BuiltinBrowse:      {Tools: []string{"Browse"}, Web: true},
	BuiltinAsk:         {Tools: []string{"ask"}},
	BuiltinTask:        {Tools: []string{"task"}},
	BuiltinRecall:      {Tools: []string{"recall"}},
	BuiltinShell:       {Tools: []string{"shell", "shell_output", "shell_kill"}, Sandbox: true},
	BuiltinPython:      {Tools: []string{"python"}, Sandbox: true},
}

// ToolsOfEveryAgent are the names of tools that an agent may have without listing them:
// to return an output, or to say that its input cannot be worked on.
var ToolsOfEveryAgent = []string{"finish", "reject"}

// BuiltinArguments are the names of the arguments of the tools of built-ins, by the names of the
// tools.
var BuiltinArguments = map[string][]string{
	"Read":         {"limit", "offset", "path"},
	"Write":        {"content", "path"},
	"Edit":         {"new_string", "old_string", "path", "replace_all"},
	"Ls":           {"path"},
	"Glob":         {"path", "pattern"},
	"Grep":         {"fixed", "glob", "ignore_case", "limit", "output_mode", "path", "pattern"},
	"think":        {"thought"},
	"HTTPRequest":  {"body", "headers", "method", "timeoutSeconds", "url"},
	"WebSearch":    {"maxResults", "query", "topic"},
	"Browse":       {"offset", "timeoutSeconds", "url"},
	"ask":          {"options", "question", "schema"},
	"task":         {"prompt"},
	"recall":       {"limit", "query"},
	"shell":        {"background", "command", "name", "timeout_seconds"},
	"shell_output": {"id", "wait_seconds"},
	"shell_kill":   {"id"},
	"python":       {"args", "code", "restart", "save_as", "script", "session", "timeout_seconds"},
}
