package run

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// However long a cause is, the message keeps the whole promise behind it, so that the cause is found again.
func TestALongCauseKeepsItsPromise(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	s := c.observed()
	long := strings.Repeat("a", 3000)
	p := waitingFor(s, v1alpha1.ReasonSecretMissing, long, within)
	cause, _, found := strings.Cut(p.message, within)
	if !found || len(cause) < 800 || strings.Trim(cause, "a") != "…" && strings.Trim(cause, "a") != "" {
		t.Errorf("the message is %q", p.message)
	}
	for i := range s.run.Status.Conditions {
		if s.run.Status.Conditions[i].Type == v1alpha1.ConditionSucceeded {
			s.run.Status.Conditions[i].Message = p.message
		}
	}
	if got := recordedCause(s); got != cause {
		t.Errorf("the recorded cause is %q, want %q", got, cause)
	}
}
