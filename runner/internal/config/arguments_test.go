package config_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The operator judges literals of rules by which builtin tools have the arguments
// path, url and method: those that put them into canonical form, and no other of
// those that need no sandbox.
func TestOnlyFileAndWebToolsHaveCanonicalArguments(t *testing.T) {
	p := parts(t)
	for _, name := range []string{"Files", "Think", "HTTPRequest", "WebSearch", "Browse", "Ask", "Task", "Recall"} {
		p.Snapshot.Agent.Tools = append(p.Snapshot.Agent.Tools, task.Tool{Builtin: name})
	}
	built, err := config.NewRegistry().Build(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string][]string{}
	for _, spec := range built.Engine.Actor.Tools.Specs() {
		var schema struct {
			Properties map[string]any `json:"properties"`
		}
		if err := json.Unmarshal(spec.Input, &schema); err != nil {
			t.Fatal(err)
		}
		for _, argument := range []string{"path", "url", "method"} {
			if _, has := schema.Properties[argument]; has {
				got[argument] = append(got[argument], spec.Name)
			}
		}
	}
	want := map[string][]string{
		"path":   {"Edit", "Glob", "Grep", "Ls", "Read", "Write"},
		"url":    {"Browse", "HTTPRequest"},
		"method": {"HTTPRequest"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
