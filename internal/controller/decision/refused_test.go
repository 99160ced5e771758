package decision

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/testing/untrustedtest"
)

// A Decision that cannot be given an owner is reported on all the same.
func TestADecisionSaysWhatWasRefused(t *testing.T) {
	for class, f := range apierrtest.Failures() {
		t.Run(class, func(t *testing.T) {
			run, d := runWithQuestion(), answering("s3c1")
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

// The garbage collector takes the owner away from what is to outlive a Run that is deleted.
// The operator, which may not have seen that the Run is deleted, does not make it the owner
// again: the Decision would be deleted with it.
func TestARunThatIsDeletedDoesNotBecomeAnOwner(t *testing.T) {
	cases := map[string]struct {
		live func(*v1alpha1.Run) // what the API server has; nil: no Run of this name
		want int
	}{
		"the Run is there": {live: func(*v1alpha1.Run) {}, want: 1},
		"it is being deleted": {live: func(r *v1alpha1.Run) {
			r.DeletionTimestamp, r.Finalizers = &metav1.Time{Time: gen.Noon}, []string{"orphan"}
		}},
		"it is deleted":            {},
		"another Run has its name": {live: func(r *v1alpha1.Run) { r.UID = "another" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run, d := runWithQuestion(), answering("s3c1")
			d.UID = "decision-uid"
			c, live := apierrtest.NewServer(t, []client.Object{run, d}), apierrtest.NewServer(t, nil)
			if tc.live != nil {
				live = apierrtest.NewServer(t, []client.Object{runWithQuestion(tc.live)})
			}
			var seen v1alpha1.Decision
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), &seen); err != nil {
				t.Fatal(err)
			}
			if _, err := New(c, live, events.NewFakeRecorder(10), func() time.Time { return gen.Noon }).Reconcile(t.Context(), &seen); err != nil {
				t.Fatal(err)
			}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), &seen); err != nil {
				t.Fatal(err)
			}
			if len(seen.OwnerReferences) != tc.want {
				t.Errorf("the owners are %+v, want %d", seen.OwnerReferences, tc.want)
			}
		})
	}
}

// What the Run reports is cleaned before a Decision on it is judged.
func TestTheReportOfTheRunIsCleaned(t *testing.T) {
	run, d := runWithQuestion(), answering("s3c1")
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
