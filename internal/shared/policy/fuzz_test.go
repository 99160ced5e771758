package policy_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/policy"
)

// Whatever the condition and the arguments: no panic; a mistake has a place; and
// what cannot be decided asks.
func FuzzCompile(f *testing.F) {
	for _, when := range []string{
		`tool == "x"`, `shell.runs("a b")`, `args.a.exists(x, x == 1)`, `has(args.x) && args.x > 1.5`, `"`, `a.b.c(`, "//\n$", `args["x"].matches("(")`, `agent.x`, `tool in [tool]`, `!shell.opaque() ? true : false`,
	} {
		f.Add(when, `{"x":1,"a":[1,"b",{"c":null}]}`)
	}
	f.Fuzz(func(t *testing.T, when, args string) {
		p, err := policy.Compile([]policy.Rule{{Name: "r", When: when, Answer: policy.Deny}}, tools)
		if err != nil {
			e, ok := errors.AsType[*policy.Error](err)
			if !ok || e.Message == "" || len(when) <= policy.MaxWhen && (e.Line < 1 || e.Column < 1) {
				t.Fatalf("%q: %#v", when, err)
			}
			return
		}
		v := p.Decide(t.Context(), policy.Call{Tool: "shell", Args: json.RawMessage(args), Shell: args})
		if v.Failed && v.Answer != policy.Ask || v.Answer != policy.Allow && v.Reason == "" {
			t.Fatalf("%q: %+v", when, v)
		}
	})
}
