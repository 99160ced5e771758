package config_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// attach returns a tool with a schema as servers write it.
func attach(input string) tool.Tool {
	made := idle("attach")
	made.Input = json.RawMessage(input)
	return made
}

func TestSchemasOfToolsAreSentAsProvidersTakeThem(t *testing.T) {
	const alternatives = `{"type":"object","anyOf":[{"properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"array"}},"required":["b"]}]}`
	cases := map[string]struct {
		repair, want string
		fits         bool // an object that fits no alternative
	}{
		"a schema is repaired, and the arguments are validated with the result": {"", `{"properties":{"a":{"type":"string"},"b":{"items":{},"type":"array"}},"type":"object"}`, true},
		"with requestRepair Disabled it is sent as it is":                       {task.RepairDisabled, alternatives, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := parts(t)
			p.Snapshot.Models[0].RequestRepair = tc.repair
			p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Attach"}}
			r := config.NewRegistry()
			addTool(t, r, "Attach", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
				return []tool.Tool{attach(alternatives)}, nil
			})
			built, err := r.Build(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			box := built.Engine.Actor.Tools
			made, _ := box.Find("attach")
			if got := string(box.Specs()[0].Input); got != tc.want || string(made.Input) != got {
				t.Errorf("the model reads %s, the tool has %s, want %s", got, made.Input, tc.want)
			}
			if repaired := len(made.Internal.Facts().SchemaChanges) > 0; repaired != (tc.repair == "") {
				t.Errorf("the changes are %q", made.Internal.Facts().SchemaChanges)
			}
			if wrong := box.Check("attach", json.RawMessage(`{}`)); (wrong == nil) != tc.fits {
				t.Errorf("Check() = %v", wrong)
			}
		})
	}
}

// Providers accept the tools of Deckhand as they are.
func TestBuiltinToolsNeedNoRepair(t *testing.T) {
	built := build(t, func(p *config.Parts) {
		p.Snapshot.Agent.Tools = []task.Tool{
			{Builtin: "Think"}, {Builtin: "Files"}, {Builtin: "Ask"}, {Builtin: "HTTPRequest"}, {Builtin: "Browse"}, {Builtin: "Recall"}, {Builtin: "Task"},
		}
		p.Snapshot.Agent.OutputSchema = json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)
	})
	for _, s := range built.Engine.Actor.Tools.Specs() {
		made, _ := built.Engine.Actor.Tools.Find(s.Name)
		if changes := made.Internal.Facts().SchemaChanges; len(changes) > 0 {
			t.Errorf("%s: %q in %s", s.Name, changes, s.Input)
		}
	}
}
