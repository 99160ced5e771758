//go:build e2e

package e2e

import (
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// call is a tool call of a scripted model.
func call(name string, args any) modeltest.Call {
	data, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return modeltest.Call{Name: name, Args: data}
}

type args map[string]any

func turns(t ...modeltest.Turn) modeltest.Dialogue { return modeltest.Dialogue{Turns: t} }

// endlessTurns are turns that each look for something else, so that none goes round
// in circles.
func endlessTurns(n int) []modeltest.Turn {
	list := looks(n, 50)
	for i := range list {
		list[i].Usage = nil // as long as it is
	}
	return list
}

// slowly is a turn that takes 2 s for each piece of 24 bytes, so that a test can act while
// the model answers even if the machine is busy: longText takes 20 s.
func slowly(text string) modeltest.Turn { return modeltest.Turn{Text: text, DelayMS: 2000} }

const longText = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty"

// scripts are what the models of the stories say.
var scripts = map[string]modeltest.Dialogue{
	"trivial": turns(modeltest.Turn{Text: "Done."}),
	"writer": turns(
		modeltest.Turn{Calls: []modeltest.Call{call("Write", args{"path": "/workspace/notes/a.txt", "content": "hello\n"})}},
		modeltest.Turn{Calls: []modeltest.Call{call("Edit", args{"path": "notes/a.txt", "old_string": "hello", "new_string": "goodbye"})}},
		modeltest.Turn{Calls: []modeltest.Call{call("Read", args{"path": "/workspace/notes/a.txt"})}},
		modeltest.Turn{Text: "It says: {{.LastToolResult}}"},
	),
	"guarded": turns( // begins under the release before, whose tools have other names
		does(call("Write", args{"path": "/workspace/a.txt", "content": "a"})),
		does(call("shell", sh("rm -r /workspace"))),
		says("{{.LastToolResult}}"),
	),
	"delegator": turns(does(delegatesTo("free-writer", "Write.")), does(delegatesTo("writer", "Write.")), says("Both wrote.")),
	"reader": turns( // changes nothing
		modeltest.Turn{Calls: []modeltest.Call{call("Ls", args{"path": "/workspace"})}},
		slowly(longText),
	),
	"changer": turns( // changes a file, then takes its time
		modeltest.Turn{Calls: []modeltest.Call{call("Write", args{"path": "/workspace/a.txt", "content": "a"})}},
		slowly(longText),
	),
	"sleeper": turns( // waits for its model once, having changed nothing
		modeltest.Turn{Calls: []modeltest.Call{call("Ls", args{"path": "/workspace"})}},
		modeltest.Turn{Text: "Done.", Faults: []modeltest.Fault{{Kind: modeltest.FaultIdle}}},
	),
	"preempted": turns( // waits for its model once, having changed nothing
		modeltest.Turn{Calls: []modeltest.Call{call("Ls", args{"path": "/workspace"})}},
		modeltest.Turn{Text: "Done.", Faults: []modeltest.Fault{{Kind: modeltest.FaultIdle}}},
	),
	"hanger": turns( // waits for its model once, having changed a file
		modeltest.Turn{Calls: []modeltest.Call{call("Write", args{"path": "/workspace/a.txt", "content": "a"})}},
		modeltest.Turn{Text: "Done.", Faults: []modeltest.Fault{{Kind: modeltest.FaultIdle}}},
	),
	"slow-reader": turns( // changes nothing, and takes longer than it takes to delete its Run
		modeltest.Turn{Calls: []modeltest.Call{call("Ls", args{"path": "/workspace"})}},
		slowly(strings.Repeat(longText+" ", 6)),
	),
	"slow-changer": turns( // changes a file, and takes longer than a drained pod may
		modeltest.Turn{Calls: []modeltest.Call{call("Write", args{"path": "/workspace/a.txt", "content": "a"})}},
		slowly(strings.Repeat(longText+" ", 9)),
	),
	"idler": turns( // is never answered, having changed nothing
		modeltest.Turn{Calls: []modeltest.Call{call("Ls", args{"path": "/workspace"})}},
		modeltest.Turn{Text: "never", Faults: []modeltest.Fault{{Kind: modeltest.FaultIdle, Times: -1}}},
	),
	"clumsy": turns(
		modeltest.Turn{Calls: []modeltest.Call{{Name: "Write", Args: json.RawMessage(`"{\"path\": \"/workspace/a.txt\", \"content\": "`)}}},
		modeltest.Turn{Calls: []modeltest.Call{call("Read", args{"path": "/workspace/../deckhand/token/token"})}},
		modeltest.Turn{Calls: []modeltest.Call{call("Read", args{"path": "/deckhand/secrets/models/clumsy/key"})}},
		modeltest.Turn{Calls: []modeltest.Call{call("Teleport", args{})}},
		modeltest.Turn{Text: "I could not: {{.LastToolResult}}"},
	),
	"flaky": turns(modeltest.Turn{Text: "Done at last.", Faults: []modeltest.Fault{
		{Kind: modeltest.FaultStatus, Status: 429, RetryAfter: "0"},
		{Kind: modeltest.FaultCut, After: 60},
		{Kind: modeltest.FaultReset},
	}}),
	"web-page": turns(modeltest.Turn{Text: "never", Faults: []modeltest.Fault{{Kind: modeltest.FaultHTML, Times: -1}}}),
	"endless":  {Turns: endlessTurns(500)},
	"parrot":   turns(modeltest.Turn{Text: "My key is " + key + ", is it not?"}),
	"typed": turns(
		modeltest.Turn{Text: "I would say seven."},
		modeltest.Turn{Calls: []modeltest.Call{call("Finish", args{"answer": 7})}},
	),
	"forecaster": turns( // goes on without its tool
		modeltest.Turn{Calls: []modeltest.Call{call("weather__show", args{"day": "today"}), call("weather__show", args{"day": "tomorrow"})}},
		modeltest.Turn{Text: "I do not know."},
	),
	"hostile":    honest,
	"evil-paths": writesEvilPaths(),
	"decliner":   turns(modeltest.Turn{Calls: []modeltest.Call{call("Reject", args{"reason": "this is not for me"})}}),
}
