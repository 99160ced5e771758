package workflowrun

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
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

// The default TTL of the installation deletes a Run that says nothing, once the volumes that its
// children shared are gone.
func TestTheDefaultTTLOfAWorkflowsRun(t *testing.T) {
	const week = 7 * 24 * time.Hour
	over := metav1.NewTime(gen.Noon)
	claim := corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Name: "shared", Annotations: map[string]string{v1alpha1.AnnotationRetain: string(stored.RetainAlways), v1alpha1.AnnotationRetention: "240h"},
	}}
	for name, tc := range map[string]struct {
		byDefault, after time.Duration
		volumes          []corev1.PersistentVolumeClaim
		deletes          bool
		wakes            time.Duration
	}{
		"there is none":                       {0, 2 * week, nil, false, 0},
		"before":                              {week, week - time.Hour, nil, false, time.Hour},
		"after":                               {week, week, nil, true, 0},
		"a shared volume is kept for longer":  {week, week, []corev1.PersistentVolumeClaim{claim}, false, 72 * time.Hour},
		"a shared volume was kept for longer": {week, 11 * 24 * time.Hour, []corev1.PersistentVolumeClaim{claim}, false, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{now: gen.Noon.Add(tc.after), defaultTTL: tc.byDefault, volumes: tc.volumes, run: gen.Run(func(r *v1alpha1.Run) { r.Status.CompletionTime = &over })}
			if p := decide(s); p.deleteRun != tc.deletes || p.wake != tc.wakes {
				t.Errorf("the Run is deleted: %t, reconciled again in %s, want %t, %s", p.deleteRun, p.wake, tc.deletes, tc.wakes)
			}
		})
	}
}
