package workflow_test

import (
	"strings"
	"testing"
)

// Without this check ${{ }} in place of {cel: ...} would be passed on as text, and the
// node would not wait for the node that it reads.
func TestTemplatesAreForPromptsAlone(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a value of an agent":             {review + "- {name: b, agent: writer, input: {topics: [a], style: '${{ nodes.review.text }}'}}", `Invalid: node b: input.style: ${{ }} is for prompts and messages, and would be text here: write {cel: "..."}`},
		"within a list":                   {review + "- {name: b, agent: writer, input: {topics: [a, 'on ${{ nodes.review.text }}']}}", `Invalid: node b: input.topics[1]: ${{ }} is for`},
		"a value of a Workflow":           {review + "- {name: b, workflow: inner, input: {subject: '${{ nodes.review.text }}'}}", `Invalid: node b: input.subject: ${{ }} is for`},
		"the answer of the whole":         {review + "output: {deep: [{text: '${{ nodes.review.text }}'}], score: {cel: nodes.review.output.score}}", `Invalid: output.deep[0].text: ${{ }} is for`},
		"what a prompt would take for it": {review + "output: {text: '$${{ x }}'}", `Invalid: output.text: ${{ }} is for`},
		"where that very text is meant":   {review + "output: {text: {cel: \"'${{ x }}'\"}}", "Ready"},
		"what only begins like it":        {review + "output: {text: '${ x }'}", "Ready"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := of(t, tc.text, map[string]string{"inner": inner})
			if got := problem(err); !strings.HasPrefix(got, tc.want) {
				t.Errorf("Of:\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}
