package continuing_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// ended returns a Run that ended with a reason, and its files.
func ended(reason string, mods ...func(*v1alpha1.Run)) continuing.Source {
	run := gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
		now := metav1.NewTime(gen.Noon)
		r.Name, r.Status.CompletionTime = "first", &now
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Reason: reason}}
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: "deckhand-run-first"}
	}}, mods...)...)
	return continuing.Source{Run: run, VolumeClaim: &corev1.PersistentVolumeClaim{}}
}

func continues(r *v1alpha1.Run) { r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first"} }

func withoutPrompt(r *v1alpha1.Run) { continues(r); r.Spec.Prompt = "" }

func TestWhatCannotBeContinued(t *testing.T) {
	terminating := ended("Finished")
	now := metav1.NewTime(gen.Noon)
	terminating.VolumeClaim.DeletionTimestamp = &now
	shared := ended("Finished")
	shared.Workflow = gen.Run(func(r *v1alpha1.Run) { r.Name = "release" })
	active := ended("")
	active.Run.Status.CompletionTime, active.Run.Status.Conditions = nil, nil
	circle := active
	circle.Circle = []string{"x", "first"}
	ending := ended("Finished")
	ending.Pod = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "first-1"}}
	gone := ended("Finished")
	gone.VolumeClaim = nil
	for name, tc := range map[string]struct {
		source continuing.Source
		run    func(*v1alpha1.Run)
		want   string // reason and a part of the message; empty: it can
	}{
		"a finished Run":                      {ended("Finished"), continues, ""},
		"a failed Run without a prompt":       {ended("ModelUnavailable"), withoutPrompt, ""},
		"a finished Run without a prompt":     {ended("Finished"), withoutPrompt, "Misconfigured: Run first ended with reason Finished, so there is nothing left to do. Create a Run with spec.prompt"},
		"a rejected Run without a prompt":     {ended("Rejected"), withoutPrompt, "Misconfigured: Run first ended with reason Rejected"},
		"a finished Run with input alone":     {ended("Finished"), func(r *v1alpha1.Run) { withoutPrompt(r); r.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"a":1}`)} }, "Misconfigured: Run first ended with reason Finished"},
		"a fork without a prompt":             {ended("Finished"), func(r *v1alpha1.Run) { withoutPrompt(r); step := int64(3); r.Spec.ContinueFrom.Step = &step }, ""},
		"a Run that was deleted":              {continuing.Source{}, func(r *v1alpha1.Run) { continues(r); r.Spec.ContinueFrom.UID = "uid-first" }, "NothingToContinue: Run first (spec.continueFrom.run) was deleted, and no other Run will have the uid uid-first"},
		"a Run that does not exist":           {continuing.Source{}, continues, "Pending: Run first (spec.continueFrom.run) does not exist in namespace team-a"},
		"another Run of the name":             {ended("Finished"), func(r *v1alpha1.Run) { continues(r); r.Spec.ContinueFrom.UID = "deleted" }, "NothingToContinue: Run first (spec.continueFrom.run) was deleted, and another Run has its name now: its UID is run-uid, and spec.continueFrom.uid is deleted. Create a Run without continueFrom, or with the uid of the Run to continue"},
		"another Run of the name, active":     {active, func(r *v1alpha1.Run) { continues(r); r.Spec.ContinueFrom.UID = "deleted" }, "NothingToContinue: Run first"},
		"the Run of the UID":                  {ended("Finished"), func(r *v1alpha1.Run) { continues(r); r.Spec.ContinueFrom.UID = "run-uid" }, ""},
		"an active Run":                       {active, continues, "Queued: Waiting for the end of Run first, which this Run continues"},
		"a Run that waits for this one":       {circle, continues, "Misconfigured: Runs x, first wait for each other"},
		"a Run of an active workflow":         {shared, continues, "Queued: Waiting for the end of Run release, whose other Runs may still change the files of Run first"},
		"a Run whose pod still works":         {ending, continues, "Queued: Waiting for the end of pod first-1, which may still change the files of Run first"},
		"a Run of a Workflow":                 {ended("Finished", func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow = "", "w" }), continues, "Misconfigured: Run first is a Run of Workflow w. An Agent can continue the Run of an Agent only"},
		"a Run of another user":               {ended("Finished", func(r *v1alpha1.Run) { r.Spec.User = "ann" }), continues, `Misconfigured: spec.user is "", and that of Run first is "ann"`},
		"a Run of another user, still active": {func() continuing.Source { s := active; s.Run = s.Run.DeepCopy(); s.Run.Spec.User = "ann"; return s }(), continues, `Misconfigured: spec.user is ""`},
		"a restored Run":                      {ended("Restored"), continues, "NothingToContinue: Run first was restored from a backup"},
		"a Run that never started":            {ended("AdmissionDenied", func(r *v1alpha1.Run) { r.Status.Attempt = nil }), continues, "NothingToContinue: Run first ended before it started (AdmissionDenied)"},
		"a Run without a volume":              {ended("Finished", func(r *v1alpha1.Run) { r.Status.Attempt.VolumeClaim = "" }), continues, "NothingToContinue: Run first kept no conversation and no files, because workspace.durability of Agent fixer was Pod. Set it to Volume"},
		"a volume that was deleted":           {gone, continues, "NothingToContinue: The conversation and the files of Run first were deleted with PersistentVolumeClaim deckhand-run-first"},
		"a volume that is being deleted":      {terminating, continues, "NothingToContinue: The conversation and the files of Run first were deleted"},
		"a chain of 20":                       {ended("Finished", chainOf(19)), continues, ""},
		"a chain of 21":                       {ended("Finished", chainOf(20)), continues, "Misconfigured: A Run can continue at most 20 Runs, one after the other, and Run first has continued as many"},
	} {
		t.Run(name, func(t *testing.T) {
			got := continuing.Check(gen.Run(tc.run), tc.source)
			switch {
			case got == nil && tc.want == "":
			case got == nil || tc.want == "" || !strings.HasPrefix(got.Reason+": "+got.Message, tc.want):
				t.Errorf("got %+v, want %s", got, tc.want)
			case got.IsFinal() != slices.Contains([]string{"Misconfigured", "NothingToContinue"}, got.Reason):
				t.Errorf("%s is final: %v", got.Reason, got.IsFinal())
			}
		})
	}
}

// A Run that ended before a model answered has no cost, and does not hide that of the others.
func TestARunThatUsedNothingCostNothing(t *testing.T) {
	cost := int64(300_000)
	got := continuing.StatusOf(ended("ModelUnavailable", func(r *v1alpha1.Run) {
		r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"zeroth"}, TotalTokens: v1alpha1.MaxUsage, CostMicroUSD: &cost}
		r.Status.Progress = &v1alpha1.RunProgress{}
	}).Run)
	if got.Cost != "0.30USD" || got.TotalTokens != v1alpha1.MaxUsage {
		t.Errorf("got %+v", got)
	}
}

func chainOf(n int) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: make([]string, n)} }
}

// A sum of costs is known only if all of them are.
func TestTheCostOfAChain(t *testing.T) {
	cents := func(n int64) *int64 { n *= 10_000; return &n }
	for name, tc := range map[string]struct {
		before, own *int64
		want        string
	}{
		"all have prices":        {cents(30), cents(12), "0.42USD"},
		"more than can be shown": {cents(99_999_999), cents(99_999_999), "999999.999999USD"},
		"the last has none":      {cents(30), nil, ""},
		"one before it has none": {nil, cents(12), ""},
	} {
		source := ended("Finished", func(r *v1alpha1.Run) {
			r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"zeroth"}, TotalTokens: 5, CostMicroUSD: tc.before}
			r.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: 7, CostMicroUSD: tc.own}}
		})
		got := continuing.StatusOf(source.Run)
		if got.TotalTokens != 12 {
			t.Errorf("%s: %d tokens", name, got.TotalTokens)
		}
		if got.Cost != tc.want || (got.CostMicroUSD == nil) != (tc.want == "") || got.TotalTokens != 12 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
