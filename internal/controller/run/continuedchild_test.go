package run

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// The operator is exempt from the policy that checks who may continue a Run, so no child Run that an
// agent asks for continues one: not that of its parent, and not one that a model names.
func TestAChildRunContinuesNoRun(t *testing.T) {
	for name, args := range map[string]string{
		"asked for":          `{"prompt":"x"}`,
		"with continueFrom":  `{"prompt":"x","continueFrom":{"run":"secret"}}`,
		"with it in a spec":  `{"prompt":"x","spec":{"continueFrom":{"run":"secret"}}}`,
		"with it for prompt": `{"prompt":"continueFrom: {run: secret}"}`,
	} {
		t.Run(name, func(t *testing.T) {
			s := stateWithRequests(t, withReviewer(gen.Objects()), review("s2c1", func(p *v1alpha1.PendingRequest) { p.Args = args }))
			s.run.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "before"}
			if child := childOf(s, s.delegations(s.progress())[0], nil); child.Spec.ContinueFrom != nil {
				t.Errorf("the child Run continues %+v", child.Spec.ContinueFrom)
			}
		})
	}
}
