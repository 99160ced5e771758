package lint

import (
	"cmp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// A rule that cannot be compiled is found in an Agent that the API server refuses for something else.
func TestRulesAreCheckedBesideOtherErrors(t *testing.T) {
	const badRule = "- {name: two, when: \"tool == 'Shel' +\", answer: Deny}"
	for name, tc := range map[string]struct {
		limits, tools, policy string
		want                  []string // the paths of the errors
	}{
		"a value of another type":    {"{steps: three}", "", badRule, []string{"spec.limits.steps", "spec.policy[0]"}},
		"an unknown field":           {"{stepz: 3}", "", badRule, []string{"spec.limits.stepz", "spec.policy[0]"}},
		"a rule with another answer": {"{}", "", "- {name: one, when: 'true', answer: deny}\n  " + badRule, []string{"spec.policy[0].answer", "spec.policy[1]"}},
		"a good rule":                {"{stepz: 3}", "", "- {name: one, when: \"tool == 'Shell'\", answer: Deny}", []string{"spec.limits.stepz"}},
		"an error in the tools":      {"{}", "[{builtn: Shell}]", badRule, []string{"spec.tools[0].builtn"}},
	} {
		t.Run(name, func(t *testing.T) {
			text := "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  model: m\n  instructions: Do it.\n  sandbox: {image: alpine}\n" +
				"  limits: " + tc.limits + "\n  tools: " + cmp.Or(tc.tools, "[{builtin: Shell}]") + "\n  policy:\n  " + tc.policy + "\n"
			var got []string
			for line := range strings.Lines(lintText(t, "f.yaml", text)) {
				if parts := strings.SplitN(line, ": ", 4); parts[1] == string(Error) {
					got = append(got, strings.TrimSuffix(parts[3][:strings.Index(parts[3], ": ")], ":"))
				}
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s\n%s", diff, lintText(t, "f.yaml", text))
			}
		})
	}
}
