package workflowrun

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// What a nested workflow found may be read as long as the Run above goes on, so
// its TTL does not run until then.
func TestTTLDoesNotRunWhileTheRunAboveGoesOn(t *testing.T) {
	none, over := int32(0), metav1.NewTime(gen.Noon)
	s := state{now: gen.Noon.Add(time.Hour), run: gen.Run(func(r *v1alpha1.Run) {
		r.Spec.TTLSecondsAfterFinished, r.Status.CompletionTime = &none, &over
	})}
	for above, forgets := range map[bool]bool{true: false, false: true} {
		s.parentIsActive = above
		p := decide(s)
		if p.deleteRun != forgets || above && p.wake != parentInterval {
			t.Errorf("the Run above active: %v: forgotten %v, looked at again in %s", above, p.deleteRun, p.wake)
		}
	}
}
