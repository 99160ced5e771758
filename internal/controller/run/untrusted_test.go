package run

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/testing/untrustedtest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// No condition and no event of a Run has text of a runner with control characters,
// invisible ones or line breaks, in whichever field of its report the text stands.
func TestConditionsAndEventsContainNoRawTextOfARunner(t *testing.T) {
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	ends := map[string]func(*cluster){
		"it runs": func(*cluster) {},
		"it ends": exits(1, 0),
		"it dies": exits(1, 1),
	}
	reported := map[string]*v1alpha1.RunProgress{
		"working": {},
		"waiting": {State: v1alpha1.ReasonAwaitingApproval, Pending: []v1alpha1.PendingRequest{{
			ID: "s2c1", Kind: task.PendingApproval, Agent: "a", Tool: "Bash", Args: "{}", Question: "q", Digest: "d", Rule: "r", Schema: "{}", Approvers: &v1alpha1.Approvers{Groups: []string{"g"}},
		}}},
		"delegating": {Pending: []v1alpha1.PendingRequest{{ID: "s2c1", Kind: task.PendingDelegation, Agent: "reviewer", Args: `{"prompt":"x"}`}}},
		"finished":   {Result: &v1alpha1.Result{Committed: true, Reason: "Finished", Message: "m", Warning: "w", Files: []v1alpha1.File{{}}, Published: &v1alpha1.Published{}}},
		"left":       {Result: &v1alpha1.Result{Reason: string(task.ReasonWaiting), Message: "m"}},
	}
	for state, report := range reported {
		report.Step, report.Recent = &v1alpha1.CurrentStep{}, []v1alpha1.RecentStep{{}}
		report.Decided, report.Confinement = []v1alpha1.DecidedRequest{{Name: "x.s2c1"}}, &v1alpha1.Confinement{}
		for end, happens := range ends {
			untrustedtest.EachString(report, state+", "+end, func(path string) {
				c := newCluster(t, gen.Run(), gen.Agent())
				c.begin()
				starts(1)(c)
				c.step()
				reports(1, func(p *v1alpha1.RunProgress) {
					attempt, sequence := p.Attempt, p.Sequence
					*p = *report.DeepCopy()
					p.Attempt, p.Sequence = attempt, sequence
				})(c)
				happens(c)
				for range 3 {
					c.run.Status.Progress = untrusted.Progress(c.run.Status.Progress)
					before := c.run.Status.DeepCopy()
					c.step()
					checkVisible(t, path, *before, c.run.Status)
				}
			})
		}
	}
}

func checkVisible(t *testing.T, path string, before, after v1alpha1.RunStatus) {
	t.Helper()
	var messages []string
	for _, c := range after.Conditions {
		messages = append(messages, c.Reason, c.Message)
	}
	for _, e := range runstatus.Transitions(before, after) {
		messages = append(messages, e.Reason, e.Note)
		if e.Kind != corev1.EventTypeNormal && e.Kind != corev1.EventTypeWarning {
			t.Errorf("%s: an event of type %q", path, e.Kind)
		}
	}
	for _, m := range messages {
		if untrustedtest.IsRaw(m) {
			t.Errorf("%s: %+q", path, m)
		}
	}
}

// What look reads, of the Run and of its child Runs, is cleaned.
func TestReportsAreCleanedWhenTheyAreRead(t *testing.T) {
	raw := &v1alpha1.RunProgress{Attempt: 1, Result: &v1alpha1.Result{Message: untrustedtest.RawText}}
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: "x-1"}
		r.Status.Internal.Delegated, r.Status.Progress = []string{childMark("a")}, raw
	})
	s := newRefuser(t, run, gen.Agent())
	child := gen.Run(func(r *v1alpha1.Run) {
		r.Name, r.ResourceVersion = "x-a", ""
		r.Labels = map[string]string{v1alpha1.LabelParentRun: "x", v1alpha1.LabelRequest: "s2c1"}
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))}
	})
	if err := s.Create(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	child.Status.Progress = raw
	if err := s.Status().Update(t.Context(), child); err != nil {
		t.Fatal(err)
	}
	observed, err := s.reconciler.observe(t.Context(), s.get())
	if err != nil || len(observed.children) != 1 {
		t.Fatalf("%d children: %v", len(observed.children), err)
	}
	for what, p := range map[string]*v1alpha1.RunProgress{"the Run": observed.run.Status.Progress, "its child": observed.children[0].Status.Progress} {
		if p.Result.Message == "" || untrustedtest.IsRaw(p.Result.Message) {
			t.Errorf("%s says %+q", what, p.Result.Message)
		}
	}
	word := string(task.Termination{Result: task.Result{Message: untrustedtest.RawText}}.Encode())
	if got := runnerpod.DecodeTermination(&corev1.ContainerStateTerminated{Message: word}); got == nil || untrustedtest.IsRaw(got.Result.Message) {
		t.Errorf("the termination message is %+v", got)
	}
}
