package config_test

import (
	"fmt"
	"strings"
	"testing"
)

// The AGENTS.md of a workspace may be a link, which a fetched repository brings.
func TestThePromptShowsOnlyInstructionsThatThePolicyLetsTheAgentRead(t *testing.T) {
	const left = "AGENTS.md of the workspace is not shown to the agent: its policy does not allow Read of %s. Allow Read of this file, or set workspace.agentsFile to Ignore."
	cases := map[string]struct {
		link, when, answer string
		want               string // in the prompt; empty: nothing of the file
		log                string
	}{
		"a link to a file that is denied": {
			link: ".github/workflows/ci.yml", when: ciPaths, answer: "Deny", log: fmt.Sprintf(left, "/workspace/.github/workflows/ci.yml"),
		},
		"a link to a file that a person is asked about": {
			link: ".github/workflows/ci.yml", when: ciPaths, answer: "Ask", log: fmt.Sprintf(left, "/workspace/.github/workflows/ci.yml"),
		},
		"a link through other links": {link: "code/hub/workflows/ci.yml", when: ciPaths, answer: "Deny", log: fmt.Sprintf(left, "/workspace/.github/workflows/ci.yml")},
		"a rule that cannot be decided": {
			link: "src/a.go", when: `tool == "Read" && args.none == "x"`, answer: "Deny", log: fmt.Sprintf(left, "/workspace/src/a.go"),
		},
		"a file that is denied itself":      {when: `tool == "Read" && args.path == "/workspace/AGENTS.md"`, answer: "Deny", log: fmt.Sprintf(left, "/workspace/AGENTS.md")},
		"a link to a file that may be read": {link: "code/a.go", when: ciPaths, answer: "Deny", want: "secret-a"},
		"a file of its own":                 {when: ciPaths, answer: "Deny", want: "secret-own"},
		"a link that is denied and leads to a file that may be read": {
			link: "src/a.go", when: `tool == "Read" && args.path == "/workspace/AGENTS.md"`, answer: "Deny", want: "secret-a",
		},
		"another tool is denied": {link: ".github/workflows/ci.yml", when: `tool == "Write"`, answer: "Deny", want: "secret-ci"},
		"a link to nothing":      {link: ".github/none", when: ciPaths, answer: "Deny"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := newFixer(t, rule(tc.when, tc.answer))
			if tc.link == "" {
				f.put("AGENTS.md", "secret-own")
			} else {
				f.link(tc.link, "AGENTS.md")
			}
			var logged []string
			f.parts.Log = func(text string) { logged = append(logged, text) }
			f.run()
			prompt := f.prompt()
			if !strings.Contains(prompt, tc.want) || tc.want == "" && (strings.Contains(prompt, "secret") || strings.Contains(prompt, "workspace-instructions")) {
				t.Errorf("the prompt is %q", prompt)
			}
			if got := strings.Join(logged, "\n"); got != tc.log {
				t.Errorf("the log says %q, want %q", got, tc.log)
			}
		})
	}
}
