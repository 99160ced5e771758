package policy

import (
	"slices"
	"strings"

	"github.com/google/cel-go/cel"

	"github.com/deckhand-dev/deckhand/internal/shared/celhints"
)

// explain explains an error of CEL in a condition, and says what to write.
func explain(when string, e *cel.Error) *Error {
	wrong := &Error{Field: "when", Line: max(e.Location.Line(), 1), Column: max(e.Location.Column()+1, 1)}
	wrong.Message = celhints.Append(celhints.Message(e), when, wrong.Line, wrong.Column, hints)
	return wrong
}

// hints are tried in their order.
var hints = slices.Concat([]celhints.Hint{
	{Message: "token recognition", After: "=~", Text: "write args.x.matches('…')"},
	{Message: "token recognition", After: "$", Text: "values have no mark here: write args.x"},
}, celhints.Syntax, []celhints.Hint{
	{Message: "mismatched input", Text: "conditions are joined by && and ||"},
	{Message: "extraneous input", Text: "conditions are joined by && and ||"},
	{Message: "undeclared reference to 'run'", After: "(", Text: shellHint},
	{Message: "undeclared reference to", After: "(", Text: functionHint + shellHint},
	{Message: "undeclared reference to 'agent'", Text: "an agent has agent.name and agent.depth"},
	{Message: "undeclared reference to 'run'", Text: "a run has run.namespace, run.name, run.user and run.labels"},
	{Message: "undeclared reference", Text: "a condition reads tool, args, agent.name, agent.depth, run.namespace, run.name, run.user, run.labels and shell; strings need quotes"},
	{Message: "type 'shell' does not support field selection", Text: shellHint},
	{Message: "does not support field selection", Text: "only args and run.labels have fields; tool is the name itself, as in tool == 'Write'"},
	{Message: "no matching overload for 'runs'", Text: "write a program and at most seven words, each in quotes: shell.runs('git', 'push')"},
	{Message: "no matching overload for 'opaque'", Text: "write shell.opaque()"},
	{Message: "no matching overload for '_&&_'", Text: "both sides must be conditions"},
	{Message: "no matching overload for '_||_'", Text: "both sides must be conditions"},
	{Message: "no matching overload for '!_'", Text: "only a condition can be negated"},
	{Message: "no matching overload for '_==_'", Text: "compare values of one type: strings need quotes"},
	{Message: "invalid argument to has()", Text: "write has(args.x)"},
	{Message: "invalid matches argument", Text: "the syntax is RE2, without look-around and back-references"},
	{Message: "nesting limit", Text: "at most two of exists and all go into each other"},
})

var functionHint = "the functions are contains, startsWith, endsWith, matches, " + strings.Join(stringFunctionNames, ", ") + ", size, exists, all, map and filter, "

const shellHint = "a shell has shell.runs('git', 'push') and shell.opaque()"
