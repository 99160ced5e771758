package task

// BuiltinTools has the names by which a model calls the tools of each built-in that an
// Agent may list. The first is the tool that the built-in is named after.
var BuiltinTools = map[string][]string{
	"Files":       {"Read", "Write", "Edit", "Ls", "Glob", "Grep"},
	"Think":       {"think"},
	"HTTPRequest": {"HTTPRequest"},
	"WebSearch":   {"WebSearch"},
	"Browse":      {"Browse"},
	"Ask":         {"ask"},
	"Task":        {"task"},
	"Recall":      {"recall"},
	"Shell":       {"shell", "shell_output", "shell_kill"},
	"Python":      {"python"},
}

// ToolsOfEveryAgent are the names of tools that an agent may have without listing them:
// to return an output, or to say that its input cannot be worked on.
var ToolsOfEveryAgent = []string{"finish", "reject"}
