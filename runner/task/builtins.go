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

// Builtins has the built-ins by name. AGENTS.md says how to add one.
var Builtins = map[string]Builtin{
	"Files":       {Tools: []string{"Read", "Write", "Edit", "Ls", "Glob", "Grep"}},
	"Think":       {Tools: []string{"think"}},
	"HTTPRequest": {Tools: []string{"HTTPRequest"}, Web: true},
	"WebSearch":   {Tools: []string{"WebSearch"}},
	"Browse":      {Tools: []string{"Browse"}, Web: true},
	"Ask":         {Tools: []string{"ask"}},
	"Task":        {Tools: []string{"task"}},
	"Recall":      {Tools: []string{"recall"}},
	"Shell":       {Tools: []string{"shell", "shell_output", "shell_kill"}, Sandbox: true},
	"Python":      {Tools: []string{"python"}, Sandbox: true},
}

// ToolsOfEveryAgent are the names of tools that an agent may have without listing them:
// to return an output, or to say that its input cannot be worked on.
var ToolsOfEveryAgent = []string{"finish", "reject"}
