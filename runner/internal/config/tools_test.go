package config_test

import (
	"context"
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// full returns a tool that has something in each field, with a schema that is repaired.
func full() tool.Tool {
	return tool.Tool{
		Spec: tool.Spec{
			Name: "full", Description: "Has all.", Input: json.RawMessage(`{"type":"object","properties":{"a":{"type":"array"}}}`),
			Effect: tool.Resumable, Concurrency: tool.PerPath, Timeout: time.Hour,
			Internal: facts.Facts{
				Foreign: true, Endpoint: facts.Endpoint{Name: "e", Field: "f"}, Origin: facts.Origin{Toolset: "t", Tool: "u"},
				SchemaChanges: []string{"none"}, Ends: true,
			}.Internal(),
		},
		Call:         func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil },
		Classify:     func(json.RawMessage) tool.Effect { return tool.ReadOnly },
		Canonicalize: func(context.Context, json.RawMessage) (json.RawMessage, *tool.Error) { return nil, nil },
		Closer:       tool.CloseFunc(func() error { return nil }),
	}
}

// An entry of an Agent gives a tool another name and timeout, and its schema is repaired. All
// else stays: also a field that is added later.
func TestAnEntryOfAnAgentKeepsTheFieldsOfATool(t *testing.T) {
	given := full()
	r := config.NewRegistry()
	addTool(t, r, "Full", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) { return []tool.Tool{given}, nil })
	p := parts(t)
	p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Full", Name: "again", TimeoutSeconds: 7}}
	built, err := r.Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := built.Engine.Actor.Tools.Find("again")
	if !ok || got.Timeout != 7*time.Second || string(got.Input) == string(given.Input) {
		t.Fatalf("found %v: %+v", ok, got.Spec)
	}
	changes := map[string]bool{"Name": true, "Timeout": true, "Input": true, "SchemaChanges": true}
	wantSameFields(t, reflect.ValueOf(given), reflect.ValueOf(got), changes)
	wantSameFields(t, reflect.ValueOf(given.Spec), reflect.ValueOf(got.Spec), changes)
	wantSameFields(t, reflect.ValueOf(given.Internal.Facts()), reflect.ValueOf(got.Internal.Facts()), changes)
}

// wantSameFields compares two structs field by field, except those that change and nested
// structs. A field without a value proves nothing.
func wantSameFields(t *testing.T, given, got reflect.Value, changes map[string]bool) {
	t.Helper()
	for field := range given.Type().Fields() {
		a, b := given.FieldByIndex(field.Index), got.FieldByIndex(field.Index)
		switch {
		case a.IsZero():
			t.Errorf("the test gives the field %s no value", field.Name)
		case changes[field.Name], field.Type == reflect.TypeFor[tool.Spec](), field.Type == reflect.TypeFor[facts.Internal]():
		case a.Kind() == reflect.Func && a.Pointer() != b.Pointer(),
			a.Kind() != reflect.Func && !reflect.DeepEqual(a.Interface(), b.Interface()):
			t.Errorf("the field %s is lost", field.Name)
		}
	}
}

func TestAToolWithoutCallIsMisconfigured(t *testing.T) {
	r := config.NewRegistry()
	addTool(t, r, "Empty", func(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
		return []tool.Tool{{Spec: tool.Spec{Name: "empty"}}}, nil
	})
	p := parts(t)
	p.Snapshot.Agent.Tools = []task.Tool{{Custom: "Empty"}}
	_, err := r.Build(t.Context(), p)
	if want := `Misconfigured: Agent fixer: making the tools of Empty: the tool "empty" has no Call`; err == nil || err.Error() != want {
		t.Errorf("Build() = %v, want %s", err, want)
	}
}
