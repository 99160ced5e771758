package decision

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/untrusted/untrustedtest"
)

// A Decision that cannot be given an owner is reported on all the same.
func TestADecisionSaysWhatWasRefused(t *testing.T) {
	for class, f := range apierrtest.Failures() {
		t.Run(class, func(t *testing.T) {
			run, d := asking(), answering("s3c1")
			d.UID = "decision-uid"
			c := apierrtest.NewServer(t, []client.Object{run, d})
			c.RefuseAll("patch", "Decision", f)
			var seen v1alpha1.Decision
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), &seen); err != nil {
				t.Fatal(err)
			}
			if _, err := New(c, c, events.NewFakeRecorder(10), func() time.Time { return gen.Noon }).Reconcile(t.Context(), &seen); err == nil {
				t.Error("it is not tried again")
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), &seen); err != nil {
				t.Fatal(err)
			}
			if len(seen.Status.Conditions) == 0 || !strings.Contains(seen.Status.Conditions[0].Message, f.Want) {
				t.Errorf("the conditions are %+v, want one that names %q", seen.Status.Conditions, f.Want)
			}
		})
	}
}

// What the Run reports is cleaned before a Decision on it is judged.
func TestTheReportOfTheRunIsCleaned(t *testing.T) {
	run, d := asking(), answering("s3c1")
	run.Status.Progress.Result = &v1alpha1.Result{Message: untrustedtest.RawText}
	c := apierrtest.NewServer(t, []client.Object{run, d})
	o, err := New(c, c, events.NewFakeRecorder(10), func() time.Time { return gen.Noon }).observe(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	if text := o.run.Status.Progress.Result.Message; text == "" || untrustedtest.IsRaw(text) {
		t.Errorf("the Run says %+q", text)
	}
}
