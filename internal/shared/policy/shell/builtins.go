package shell

import (
	"slices"
	"strings"
)

// builtin visits the builtins of a shell that run commands, set variables or change
// how commands are parsed. It reports whether the command is one of them.
func (r *reader) builtin(name string, args []word) bool {
	switch name {
	case ".", "source", "eval", "bind", "complete", "compgen", "compopt", "enable", "fc", "hash",
		"export", "declare", "typeset", "local", "readonly": // not read as declarations, as in \export
		r.assignments(args)
		r.skipWords(args, name+" runs commands, or replaces programs")
	case "alias":
		if slices.ContainsFunc(args, func(w word) bool { return !w.known || strings.Contains(w.text, "=") }) {
			r.skipWords(append(slices.Clip(args), anything), "an alias may replace a program")
		}
	case "trap":
		r.trap(args)
	case "set", "shopt":
		r.shellOptions(name, args)
	case "jobs":
		r.commandOption(name, 'x', args)
	case "mapfile", "readarray":
		r.commandOption(name, 'C', args)
		r.variableNames(args)
	case "read", "wait", "unset", "getopts", "let", "test", "[":
		r.variableNames(args)
	case "printf":
		if len(args) > 0 && strings.HasPrefix(args[0].text, "-v") {
			r.variableNames(args)
		}
	default:
		return false
	}
	return true
}

// trap visits the commands of a trap.
func (r *reader) trap(args []word) {
	if first(args) == "--" {
		args = args[1:]
	}
	switch {
	case len(args) < 2 || args[0].known && listed(" - -l -p ", args[0].text):
	case args[0].known:
		r.script(args[0].text)
	default:
		r.markOpaque("trap runs what is only known when it runs")
	}
}

// commandOption finds the option of a builtin that runs a command, also in a
// bundle.
func (r *reader) commandOption(name string, letter rune, args []word) {
	if slices.ContainsFunc(args, func(w word) bool {
		return w.isOption() && (!w.known || strings.ContainsRune(w.text, letter)) || !w.known && (w.text == "" || w.text == "-")
	}) {
		r.skipWords(args, name+" -"+string(letter)+" runs commands")
	}
}

// shellOptions visits set and shopt. Some options change how bash parses what
// follows: it expands aliases, or takes assignments after a program.
func (r *reader) shellOptions(name string, args []word) {
	for _, w := range args {
		if name == "set" && w.known && (w.text == "--" || w.text == "-") {
			return
		}
		switch {
		case !w.known:
			r.markOpaque("options of the shell that are only known when it runs: " + name + " " + w.show())
		case listed(" expand_aliases posix keyword histexpand history interactive_comments ", w.text), strings.HasPrefix(w.text, "compat"),
			name == "set" && w.isOption() && strings.Contains(w.text, "k"):
			r.markOpaque("an option changes how the shell parses commands: " + name + " " + w.show())
		}
	}
}
