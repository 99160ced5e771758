package lint

import (
	"strings"
	"testing"
)

// A skill of a ConfigMap in the files is checked as the runner would check it.
func TestSkillsInTheFilesAreChecked(t *testing.T) {
	const agent = `---
{apiVersion: deckhand.dev/v1alpha1, kind: Model, metadata: {name: m}, spec: {provider: OpenAI, modelID: gpt-5, apiKeySecretRef: {name: keys, key: key}}}
---
apiVersion: deckhand.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {model: m, instructions: Do it., tools: [{builtin: Files}], skills: [{name: go-review, configMapRef: {name: reviews}}]}
`
	for name, tc := range map[string]struct{ text, want string }{
		"a skill":       {"---\n    name: go-review\n    description: Reviews Go.\n    ---\n", ""},
		"another name":  {"---\n    name: review\n    description: Reviews Go.\n    ---\n", `error: Agent/a: spec.skills[0].configMapRef: ConfigMap reviews: SKILL.md:2: the name is "review", and the folder is "go-review": both must be the same`},
		"no YAML":       {"---\n    name: go-review\n    description: Use when: it is Go\n    ---\n", "SKILL.md:3: the frontmatter is no YAML"},
		"no skill file": {"text\n", "SKILL.md:1: it must begin with frontmatter"},
	} {
		t.Run(name, func(t *testing.T) {
			got := lintText(t, "f.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: reviews}\ndata:\n  SKILL.md: |\n    "+tc.text+agent)
			if got == "" != (tc.want == "") || !strings.Contains(got, tc.want) {
				t.Errorf("the findings are %q, want %q", got, tc.want)
			}
		})
	}
}
