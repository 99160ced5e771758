package workflowrun

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// retrier is a Run that retries the Run x, and has started if uid is set.
func retrier(uid string) *v1alpha1.Run {
	return gen.Run(ofWorkflow, func(r *v1alpha1.Run) {
		r.Name, r.UID, r.Spec.ContinueFrom = "again", "uid-again", &v1alpha1.ContinueFrom{Run: "x"}
		if uid != "" {
			r.Status.WorkflowRevision, r.Status.ContinuedFrom = "r", &v1alpha1.ContinuedFrom{UID: uid, Runs: []string{"x"}}
		}
	})
}

func TestTheSourceOfARetry(t *testing.T) {
	x := gen.Run(ofWorkflow)
	waitsForAgain := gen.Run(ofWorkflow, func(r *v1alpha1.Run) { r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "again"} })
	kids := []client.Object{childAt("x-a", "a", ""), childAt("x-b-1", "b", "1"), childAt("x-c", "c", "", strange["another Run of the name owns it"]), childAt("x-d", "d", "", strange["a backup tool created it"])}
	for name, tc := range map[string]struct {
		run      *v1alpha1.Run
		objects  []client.Object
		exists   bool
		children []string
		circle   []string
	}{
		"before the start":      {retrier(""), append(kids, x), true, []string{"x-a", "x-b-1"}, nil},
		"after the start":       {retrier("run-uid"), append(kids, x), true, []string{"x-a", "x-b-1"}, nil},
		"another of that name":  {retrier("another"), append(kids, x), false, nil, nil},
		"it does not exist":     {retrier(""), kids, false, nil, nil},
		"it waits for this Run": {retrier(""), []client.Object{waitsForAgain, retrier("")}, true, nil, []string{"again", "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{run: tc.run}
			if err := on(t, tc.objects, nil).observeSource(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, c := range s.source.children {
				got = append(got, c.Name)
			}
			slices.Sort(got)
			if (s.source.run != nil) != tc.exists {
				t.Errorf("the source is %v", s.source.run)
			}
			if diff := cmp.Diff([][]string{tc.children, tc.circle}, [][]string{got, s.source.circle}); diff != "" {
				t.Errorf("children and circle: -want +got:\n%s", diff)
			}
		})
	}
}

// A source that the cache shows under the name, but that was deleted, ends no Run: the Run waits for the cache.
func TestTheSourceOfARetryIsNamedByItsUID(t *testing.T) {
	named := func(uid string) func(*v1alpha1.Run) { return func(r *v1alpha1.Run) { r.UID = types.UID(uid) } }
	for name, tc := range map[string]struct {
		cached, live, uid, want string
	}{
		"the same":                              {"old", "old", "old", "old"},
		"the cache is late":                     {"old", "new", "new", ""},
		"it was deleted":                        {"new", "new", "old", "new"},
		"it was deleted, and the cache is late": {"older", "new", "old", "older"},
	} {
		run := retrier("")
		run.Spec.ContinueFrom.UID = tc.uid
		s := state{run: run}
		if err := on(t, []client.Object{gen.Run(ofWorkflow, named(tc.cached))}, []client.Object{gen.Run(ofWorkflow, named(tc.live))}).observeSource(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		got := ""
		if s.source.run != nil {
			got = string(s.source.run.UID)
		}
		if got != tc.want {
			t.Errorf("%s: the source is %q, want %q", name, got, tc.want)
		}
	}
}

// A Run that has the result of another retries nothing, and is told the Run of that UID only.
func TestARunThatIsReusedRetriesNothing(t *testing.T) {
	reusing := func(uid string) *v1alpha1.Run {
		run := retrier("")
		run.Annotations = map[string]string{v1alpha1.AnnotationReuseOf: uid}
		run.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gen.Run(), v1alpha1.GroupVersion.WithKind("Run"))}
		return run
	}
	for uid, found := range map[string]bool{"run-uid": true, "another": false} {
		s := state{run: reusing(uid)}
		if err := on(t, []client.Object{gen.Run(ofWorkflow)}, nil).observeSource(t.Context(), &s); err != nil {
			t.Fatal(err)
		}
		want := v1alpha1.ReasonNothingToContinue
		if found {
			want = v1alpha1.ReasonReused
			s.reusedRun.Status.Progress = &v1alpha1.RunProgress{Result: &v1alpha1.Result{Reason: v1alpha1.ReasonFinished, Output: `{"n":1}`}}
		}
		p := decide(s)
		if s.source != nil || p.Reason != want {
			t.Errorf("the Run with UID %s is %s: %s, and retries %v", uid, p.Reason, p.Message, s.source)
		}
		if status := statusOf(s, p); found && (status.Progress.Result.Output != `{"n":1}` || status.CompletionTime == nil) {
			t.Errorf("its status is %+v", status)
		}
	}
}

// A Run that waits for another wakes when that one, or one of its child Runs, has ended.
func TestWhoWaitsForARetriedRun(t *testing.T) {
	other := retrier("run-uid")
	other.Name = "begun"
	r := on(t, []client.Object{retrier(""), other, gen.Run(ofWorkflow, func(r *v1alpha1.Run) { r.Name = "plain" })}, nil)
	for _, source := range []*v1alpha1.Run{gen.Run(ofWorkflow), childAt("x-a", "a", "")} {
		var got []string
		for _, request := range r.retrying(t.Context(), source) {
			got = append(got, request.Name)
		}
		if !slices.Equal(got, []string{"again"}) {
			t.Errorf("%s wakes %v", source.Name, got)
		}
	}
	if got := r.retrying(t.Context(), gen.Run(func(r *v1alpha1.Run) { r.Name = "y" })); len(got) > 0 {
		t.Errorf("another Run wakes %v", got)
	}
}

// The status records what the Runs of the chain used, when a retry starts.
func TestARetryRecordsItsChain(t *testing.T) {
	c := newCluster(whole(t, pipeline), retries(""))
	c.before = playBefore(t, story{spec: pipeline, beats: []beat{at(0, "", ends("w-a", 1, spends(100))), at(0, "", fails("w-b", v1alpha1.ReasonStuck, "it goes in circles", spends(50)))}})
	c.before.run.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"v"}, UID: "uid-v", TotalTokens: 1000, CostMicroUSD: new(int64(20_000))}
	c.step()
	from := c.run.Status.ContinuedFrom
	want := v1alpha1.ContinuedFrom{Runs: []string{"w", "v"}, UID: "uid-w", TotalTokens: 1150, Cost: "0.0215USD", CostMicroUSD: new(int64(21_500))}
	if diff := cmp.Diff(&want, from); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	c.rest()
	if hashes := slices.Collect(maps.Values(c.children)); len(hashes) != 1 || len(hashes[0].Annotations[v1alpha1.AnnotationInputHash]) != 64 || types.UID(hashes[0].Annotations[v1alpha1.AnnotationReuseOf]) != c.before.children["w-a"].UID {
		t.Errorf("its children are %+v", hashes)
	}
}
