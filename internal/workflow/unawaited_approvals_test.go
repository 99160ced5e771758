package workflow_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestUnawaitedApprovals(t *testing.T) {
	const gate = "- {name: gate, approval: {message: 'Go? ${{ nodes.review.output.score }}'}}\n"
	cases := map[string]struct {
		text string
		want []string
	}{
		"what is to be held back does not wait":         {review + gate + "- {name: go, agent: talker, prompt: '${{ nodes.review.output.score }}'}", []string{"gate"}},
		"it waits by name":                              {review + gate + "- {name: go, agent: talker, prompt: x, dependsOn: [gate]}", nil},
		"it reads the verdict":                          {review + gate + "- {name: go, agent: talker, prompt: x, when: nodes.gate.output.approved}", nil},
		"one after the other":                           {"order: Sequential\n" + review + gate + "- {name: go, agent: talker, prompt: x}", nil},
		"a person has the last word":                    {review + gate, nil},
		"two persons have the last word":                {review + gate + "- {name: other, approval: {message: 'And you? ${{ nodes.review.output.score }}'}}", nil},
		"only finally comes after it":                   {review + gate + "finally: [{name: tell, agent: talker, prompt: x}]", nil},
		"finally reads it, and what it is for does not": {review + gate + "- {name: go, agent: talker, prompt: x}\nfinally: [{name: tell, agent: talker, prompt: '${{ nodes.gate.state }}'}]", []string{"gate"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, program(t, tc.text, nil).UnawaitedApprovals()); diff != "" {
				t.Errorf("approvals (-want +got):\n%s", diff)
			}
		})
	}
}
