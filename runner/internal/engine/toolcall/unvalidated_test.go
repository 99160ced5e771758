package toolcall_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/events"
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
			look := newTool("cat__look", tool.ReadOnly).with(func(s *tool.Spec) {
				s.Input, s.Foreign, s.Origin = json.RawMessage(tc.schema), true, tool.Origin{Toolset: "cat", Tool: "look"}
			})
			s := newSession(t, nil, `cat__look {"a":{"a":{}}}`, `cat__look {}`)
			box, err := tool.NewRegistry(look)
			if err != nil {
				t.Fatal(err)
			}
			s.options.Tools = box
			if err := s.execute(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(s.results(), "; "); got != "s2c1: cat__look done; s2c2: cat__look done" {
				t.Errorf("results %s", got)
			}
			var warnings []string
			for _, p := range s.emitted {
				if w, ok := p.(events.Warning); ok {
					warnings = append(warnings, w.Text)
				}
			}
			if tc.want == "" && len(warnings) > 0 || tc.want != "" && (len(warnings) != 1 ||
				!strings.HasPrefix(warnings[0], "The tool look of the Toolset cat is called with arguments that are not validated: "+tc.want)) {
				t.Errorf("warnings %q, want one: %s", warnings, tc.want)
			}
		})
	}
}
