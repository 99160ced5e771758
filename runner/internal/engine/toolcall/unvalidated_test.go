package toolcall_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A server may offer a schema that cannot be used: the calls are made, and a warning names the tool.
func TestCallsWithUnusableSchemasAreMade(t *testing.T) {
	for name, tc := range map[string]struct{ schema, want string }{
		"a cycle without an end":      {`{"type":"object","allOf":[{"$ref":"#"}]}`, "validating the value takes too long"},
		"a reference to elsewhere":    {`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`, `the schema refers to "https://example.com/a.json"`},
		"a pattern that is too large": {`{"type":"object","properties":{"a":{"pattern":"` + strings.Repeat(".{1000}", 100) + `"}}}`, "it compiles to about 100100 instructions"},
		"a tree":                      {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			look := newTool("cat__look", tool.ReadOnly, func(s *tool.Spec) {
				s.Input = json.RawMessage(tc.schema)
				s.Internal = facts.Facts{Foreign: true, Origin: facts.Origin{Toolset: "cat", Tool: "look"}}.Internal()
			})
			s := newSession(t, nil, `cat__look {"a":{"a":{}}}`, `cat__look {}`)
			s.options.Tools = registryOf(t, look)
			if err := s.execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.results(), "; "); got != "s2c1: cat__look done; s2c2: cat__look done" {
				t.Errorf("results %s", got)
			}
			warnings := s.warnings()
			const begin = "The tool look of the Toolset cat is called with arguments that are not validated: "
			if got := strings.Join(warnings, "\n"); (got == "") != (tc.want == "") || len(warnings) > 1 || tc.want != "" && !strings.HasPrefix(got, begin+tc.want) {
				t.Errorf("warnings %q, want one: %s", warnings, tc.want)
			}
		})
	}
}

func registryOf(t *testing.T, tools ...tool.Tool) *toolbox.Toolbox {
	t.Helper()
	box, err := toolbox.New(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

// warnings are the texts of the warnings so far.
func (s *fakeSession) warnings() []string {
	var all []string
	for _, p := range s.emitted {
		if w, ok := p.(events.Warning); ok {
			all = append(all, w.Text)
		}
	}
	return all
}
