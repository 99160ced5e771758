package config

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestAgentsThatSeeTheWorkspaceAreToldWhatIsMissing(t *testing.T) {
	p := Parts{Missing: []string{"A is missing", "B is missing"}}
	const want = "Not everything in the repository is in /workspace:\n- A is missing\n- B is missing\n" +
		"Do not rely on what is missing, and say so where it matters. Changes to files of Git LFS and below submodules are not published."
	cases := map[string]struct {
		parts Parts
		tools []task.Tool
		want  string
	}{
		"with files":              {p, []task.Tool{{Builtin: task.BuiltinFiles}}, want},
		"with commands":           {p, []task.Tool{{Builtin: task.BuiltinShell}}, want},
		"with neither":            {p, []task.Tool{{Builtin: task.BuiltinBrowse}, {Toolset: "x"}}, ""},
		"when nothing is missing": {Parts{}, []task.Tool{{Builtin: task.BuiltinFiles}}, ""},
	}
	for name, tc := range cases {
		if got := tc.parts.missing(task.Agent{Tools: tc.tools}); got != tc.want {
			t.Errorf("%s: missing() = %q", name, got)
		}
	}
}
