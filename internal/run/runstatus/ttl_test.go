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

func ownedBy(kind string, controls bool) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.OwnerReferences = []metav1.OwnerReference{{APIVersion: "batch.example/v1", Kind: kind, Name: "a", UID: "a", Controller: &controls}}
	}
}

func TestAFinishedRunGoesByItsTTL(t *testing.T) {
	const week = 7 * 24 * time.Hour
	cases := map[string]struct {
		run       *v1alpha1.Run
		byDefault time.Duration
		ttl       time.Duration
		goes      bool
	}{
		"a Run with a TTL":                                   {finished(), 0, time.Hour, true},
		"a Run with a TTL, where there is a default":         {finished(), week, time.Hour, true},
		"a Run with a TTL of 0, where there is a default":    {finished(func(r *v1alpha1.Run) { *r.Spec.TTLSecondsAfterFinished = 0 }), week, 0, true},
		"a Run with a TTL that another object controls":      {finished(ownedBy("Job", true)), week, time.Hour, true},
		"a Run without one":                                  {finished(forGood), 0, 0, false},
		"a Run without one, where there is a default":        {finished(forGood), week, week, true},
		"a Run of a Workflow":                                {finished(forGood, func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "w" }), week, week, true},
		"a Run without one that another object owns":         {finished(forGood, ownedBy("Job", false)), week, week, true},
		"a Run without one that another object controls":     {finished(forGood, ownedBy("Schedule", true)), week, 0, false},
		"a Run that Git tracks":                              {finished(tracked), 0, 0, false},
		"a Run that Git tracks, where there is a default":    {finished(tracked), week, 0, false},
		"a Run without one in Git, where there is a default": {finished(forGood, tracked), week, 0, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ttl, goes := runstatus.TTL(tc.run, tc.byDefault)
			if ttl != tc.ttl || goes != tc.goes {
				t.Errorf("TTL() = %s, %t, want %s, %t", ttl, goes, tc.ttl, tc.goes)
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
	quoting := finished(tracked)
	runstatus.Outcome{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished, Message: "I wrote: “" + kept.Message + "”"}.WriteStatus(&quoting.Status, quoting, gen.Noon)
	if said := runstatus.OutcomeWithTTLNote(quoting).Message; !strings.HasPrefix(said, "I wrote: ") || strings.Count(said, "It is not deleted after") != 2 {
		t.Errorf("an agent that writes the note of another Run ends with %q", said)
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
