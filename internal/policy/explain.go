package policy

import (
	"strings"

	"github.com/google/cel-go/cel"
)

// explain says what CEL found wrong with a condition, and what to write.
func explain(when string, e *cel.Error) *Error {
	message := strings.TrimPrefix(e.Message, "Syntax error: ")
	message, _, _ = strings.Cut(message, " expecting ") // often every token there is
	message = strings.ReplaceAll(message, " (in container '')", "")
	message = strings.ReplaceAll(message, "'<EOF>'", "the end")
	wrong := &Error{Field: "when", Line: max(e.Location.Line(), 1), Column: max(e.Location.Column()+1, 1), Message: message}
	before, rest := around(when, wrong)
	for _, h := range hints {
		if h.fits(message, before, rest) {
			wrong.Message += "; " + h.text
			break
		}
	}
	return wrong
}

// around is the line of an error before its place, and from there on.
func around(when string, e *Error) (before, rest string) {
	lines := strings.Split(when, "\n")
	if e.Line > len(lines) {
		return "", ""
	}
	line := []rune(lines[e.Line-1])
	at := min(e.Column-1, len(line))
	return string(line[:at]), string(line[at:])
}

// A hint is what to write instead, where CEL's message has a part, and the
// condition is so before and after the place. What is empty always fits.
type hint struct{ message, before, rest, text string }

func (h hint) fits(message, before, rest string) bool {
	return strings.Contains(message, h.message) && strings.HasSuffix(strings.TrimRight(before, " "), h.before) && strings.HasPrefix(rest, h.rest)
}

// hints are tried in their order.
var hints = []hint{
	{message: "token recognition", rest: "&", text: "write &&"},
	{message: "token recognition", rest: "|", text: "write ||"},
	{message: "token recognition", rest: "=~", text: "write args.x.matches('…')"},
	{message: "token recognition", rest: "=", text: "write =="},
	{message: "token recognition", rest: "\"", text: "close the quotes"},
	{message: "token recognition", rest: "'", text: "close the quotes"},
	{message: "token recognition", rest: "$", text: "values have no mark here: write args.x"},
	{message: "mismatched input", rest: "and ", text: "write &&"},
	{message: "mismatched input", rest: "or ", text: "write ||"},
	{message: "mismatched input", before: "not", text: "write !"},
	{message: "input the end", text: "something is missing there"},
	{message: "mismatched input", text: "conditions are joined by && and ||"},
	{message: "extraneous input", text: "conditions are joined by && and ||"},
	{message: "undeclared reference to 'run'", rest: "(", text: shellHint},
	{message: "undeclared reference to", rest: "(", text: functionHint + shellHint},
	{message: "undeclared reference to 'agent'", text: "an agent has agent.name and agent.depth"},
	{message: "undeclared reference to 'run'", text: "a run has run.namespace, run.name, run.user and run.labels"},
	{message: "undeclared reference", text: "a condition reads tool, args, agent.name, agent.depth, run.namespace, run.name, run.user, run.labels and shell; strings need quotes"},
	{message: "type 'shell' does not support field selection", text: shellHint},
	{message: "does not support field selection", text: "only args and run.labels have fields; tool is the name itself, as in tool == 'Write'"},
	{message: "no matching overload for 'runs'", text: "write a program and at most seven words, each in quotes: shell.runs('git', 'push')"},
	{message: "no matching overload for 'opaque'", text: "write shell.opaque()"},
	{message: "no matching overload for '_&&_'", text: "both sides must be conditions"},
	{message: "no matching overload for '_||_'", text: "both sides must be conditions"},
	{message: "no matching overload for '!_'", text: "only a condition can be negated"},
	{message: "no matching overload for '_==_'", text: "compare values of one type: strings need quotes"},
	{message: "invalid argument to has()", text: "write has(args.x)"},
	{message: "invalid matches argument", text: "the syntax is RE2, without look-around and back-references"},
	{message: "nesting limit", text: "at most two of exists and all go into each other"},
}

var functionHint = "the functions are contains, startsWith, endsWith, matches, " + strings.Join(stringFunctionNames, ", ") + ", size, exists, all, map and filter, "

const shellHint = "a shell has shell.runs('git', 'push') and shell.opaque()"
