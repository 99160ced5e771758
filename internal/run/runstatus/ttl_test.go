package runstatus_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// finished is a Run that ended at noon and goes an hour later.
func finished(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	ttl := int32(3600)
	r := gen.Run()
	runstatus.Outcome{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished, Message: "done"}.WriteStatus(&r.Status, r, gen.Noon)
	r.Spec.TTLSecondsAfterFinished = &ttl
	for _, mod := range mods {
		mod(r)
	}
	return r
}

func forGood(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = nil }

func tracked(r *v1alpha1.Run) {
	r.Labels = map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}
}

func TestAFinishedRunGoesByItsTTL(t *testing.T) {
	cases := map[string]struct {
		run  *v1alpha1.Run
		left time.Duration
		goes bool
	}{
		"with a TTL it has that long":           {finished(), 50 * time.Minute, true},
		"without one it stays":                  {finished(forGood), 0, false},
		"one that Git tracks stays in any case": {finished(tracked), 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			left, goes := runstatus.TTLRemaining(tc.run, gen.Noon.Add(10*time.Minute))
			if left != tc.left || goes != tc.goes {
				t.Errorf("Expires() = %s, %t, want %s, %t", left, goes, tc.left, tc.goes)
			}
		})
	}
}

func TestTheTTLNoteIsWrittenOnce(t *testing.T) {
	r := finished(tracked)
	kept := runstatus.OutcomeWithTTLNote(r)
	if !strings.Contains(kept.Message, "kustomize.toolkit.fluxcd.io/name") || kept.Status != metav1.ConditionTrue || kept.Reason != v1alpha1.ReasonFinished {
		t.Errorf("Kept() = %+v", kept)
	}
	kept.WriteStatus(&r.Status, r, gen.Noon)
	if again := runstatus.OutcomeWithTTLNote(r); again != kept {
		t.Errorf("Kept() a second time = %+v", again)
	}
	if plain := runstatus.OutcomeWithTTLNote(finished()); plain.Message != "done" {
		t.Errorf("one that goes says %q", plain.Message)
	}
}

func TestPauseEndsWhenARunGoesOn(t *testing.T) {
	r := gen.Run()
	runstatus.Outcome{Reason: v1alpha1.ReasonPaused}.WriteStatus(&r.Status, r, gen.Noon)
	runstatus.Outcome{Reason: v1alpha1.ReasonRunning}.WriteStatus(&r.Status, r, gen.Noon.Add(time.Minute))
	if r.Status.Internal.ResumedAt == nil || !r.Status.Internal.ResumedAt.Time.Equal(gen.Noon.Add(time.Minute)) {
		t.Errorf("resumedAt is %v", r.Status.Internal.ResumedAt)
	}
}

// What says of the Run that a backup brought it back says nothing of Runs that it
// makes: one with that label is not done.
func TestLabelsThatGoOnToChildren(t *testing.T) {
	got := runstatus.InheritedLabels(map[string]string{
		"team":                           "red",
		"kueue.x-k8s.io/queue-name":      "batch",
		"velero.io/restore-name":         "monday",
		"argocd.argoproj.io/instance":    "prod",
		"kustomize.toolkit.fluxcd.io/ns": "flux-system",
		"deckhand.dev/workflow-node":     "a",
	})
	if want := map[string]string{"team": "red", "kueue.x-k8s.io/queue-name": "batch"}; !maps.Equal(got, want) {
		t.Errorf("Inherited() = %v, want %v", got, want)
	}
}
