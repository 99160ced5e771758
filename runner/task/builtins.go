package task

import (
	"maps"
	"slices"
)

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

// The names of the tools that end the work, with a result and without.
const (
	ToolFinish = "Finish"
	ToolReject = "Reject"
)

// ToolsOfEveryAgent are the names of tools that an agent may have without listing them:
// to return an output, or to say that its input cannot be worked on.
var ToolsOfEveryAgent = []string{ToolFinish, ToolReject}

// formerNames are the names of tools in Snapshots of version 1, by their names of today.
var formerNames = map[string]string{
	"Think": "think", "Ask": "ask", "Task": "task", "Recall": "recall", "Finish": "finish", "Reject": "reject",
	"Shell": "shell", "ShellOutput": "shell_output", "ShellKill": "shell_kill", "Python": "python",
}

// ToolName returns the name that a tool of a built-in has in Snapshots of a version. The Run of an
// older Snapshot continues with the names that its policy, hooks, journal and approvals have.
func ToolName(name string, version int) string {
	if former, has := formerNames[name]; has && version == 1 {
		return former
	}
	return name
}

// FormerNames returns the names in Snapshots of version 1 of the tools that a policy is about, by their
// names of today.
func FormerNames() map[string]string {
	all := maps.Clone(formerNames)
	maps.DeleteFunc(all, func(name, _ string) bool { return slices.Contains(ToolsOfEveryAgent, name) })
	return all
}

// Renamed returns what the tool with a name in Snapshots of version 1 is called today; false: no tool had it.
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
	"Task":        {"prompt"},
	"Recall":      {"limit", "query"},
	"Shell":       {"background", "command", "name", "timeout_seconds"},
	"ShellOutput": {"id", "wait_seconds"},
	"ShellKill":   {"id"},
	"Python":      {"args", "code", "restart", "save_as", "script", "session", "timeout_seconds"},
}
