package expr_test

import (
	"encoding/json"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/workflow/celkubernetes"
)

// reviewSchema is the output.schema of a reviewer: score, verdict and tags are required.
const reviewSchema = `{"type":"object","required":["score","verdict","tags"],"properties":{
	"score":{"type":"integer"},"verdict":{"type":"string"},"weight":{"type":"number"},"note":{"type":"string"},
	"mood":{"type":"string","enum":["glad","sad"]},
	"tags":{"type":"array","items":{"type":"string"}},
	"files":{"type":"array","items":{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"lines":{"type":"integer"}}}},
	"author":{"type":"object","required":["name"],"properties":{"name":{"type":"string"},"mail-address":{"type":"string"}}},
	"extra":{"type":"object"},"counts":{"type":"object","additionalProperties":{"type":"integer"}}}}`

func review(t testing.TB) expr.Type {
	t.Helper()
	of, err := expr.FromSchema("Review", json.RawMessage(reviewSchema))
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// state is the type of the state of a node.
var state = expr.Enum("Waiting", "Running", "Succeeded", "Failed", "Skipped", "NotReached")

// node is the type of a node.
func node(name string, output expr.Type) expr.Type {
	return expr.Object("node "+name, map[string]expr.Type{"state": state, "text": expr.Optional(expr.String()), "output": output})
}

// newEnv has a node that always succeeds (sure), one that may be skipped (maybe), one
// with items that may have failed (items), and an approval (gate).
func newEnv(t testing.TB) *expr.Env {
	t.Helper()
	gate := expr.Object("Approval", map[string]expr.Type{"approved": expr.Bool(), "by": expr.String(), "input": expr.Dyn()})
	env, err := celkubernetes.Language.NewEnv(map[string]expr.Type{
		"nodes": expr.Object("nodes", map[string]expr.Type{
			"sure":  node("sure", review(t)),
			"maybe": node("maybe", expr.Optional(review(t))),
			"items": node("items", expr.List(expr.Optional(review(t)))),
			"gate":  node("gate", expr.Optional(gate)),
		}),
		"input": expr.Object("input", map[string]expr.Type{
			"goal": expr.String(), "depth": expr.Int(), "limit": expr.Optional(expr.Int()), "any": expr.Dyn(), "ratio": expr.Double(),
		}),
		"item":     expr.Dyn(),
		"previous": expr.Optional(node("previous", review(t))),
		"run":      expr.Object("run", map[string]expr.Type{"name": expr.String()}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return env
}

const fullReview = `{"score":7,"verdict":"good","weight":0.5,"note":"fine","tags":["a","b"],"files":[{"path":"x.go","lines":3},{"path":"y.go"}],
	"author":{"name":"Ann","mail-address":"a@b"},"extra":{"deep":[1,2.5,null]},"counts":{"x":1}}`

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// values returns the variables of newEnv: maybe has no output.
func values() map[string]any {
	return map[string]any{
		"nodes": map[string]any{
			"sure":  map[string]any{"state": "Succeeded", "text": "done", "output": raw(fullReview)},
			"maybe": map[string]any{"state": "Skipped", "text": expr.Absent, "output": expr.Absent},
			"items": map[string]any{"state": "Succeeded", "output": []any{
				raw(`{"score":1,"verdict":"bad","tags":[]}`), expr.Absent, raw(`{"score":3,"verdict":"good","tags":[]}`),
			}},
			"gate": map[string]any{"state": "Succeeded", "output": raw(`{"approved":true,"by":"ann","input":{"x":[1]}}`)},
		},
		"input":    raw(`{"goal":"ship ${{ it }} \"now\"","depth":9007199254740993,"any":{"list":[1,2,3],"n":1.0},"ratio":3}`),
		"item":     raw(`{"name":"it","size":3}`),
		"previous": expr.Absent,
		"run":      map[string]any{"name": "r-1"},
	}
}
