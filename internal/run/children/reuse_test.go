package children

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func given(prompt, input, user string) v1alpha1.RunSpec {
	spec := v1alpha1.RunSpec{Prompt: prompt, User: user}
	if input != "" {
		spec.Input = &runtime.RawExtension{Raw: []byte(input)}
	}
	return spec
}

// Two Runs have the same hash if they are given the same, and no other two have.
func TestInputHash(t *testing.T) {
	base := InputHash(given("p", `{"a":1,"b":[2,{"c":null}]}`, "ann"), "r")
	for name, tc := range map[string]struct {
		spec     v1alpha1.RunSpec
		revision string
		same     bool
	}{
		"the same":                  {given("p", `{"a":1,"b":[2,{"c":null}]}`, "ann"), "r", true},
		"another order and space":   {given("p", `{ "b": [2, {"c": null}], "a": 1 }`, "ann"), "r", true},
		"another prompt":            {given("q", `{"a":1,"b":[2,{"c":null}]}`, "ann"), "r", false},
		"another user":              {given("p", `{"a":1,"b":[2,{"c":null}]}`, "bob"), "r", false},
		"another revision":          {given("p", `{"a":1,"b":[2,{"c":null}]}`, "ann"), "s", false},
		"another order of a list":   {given("p", `{"a":1,"b":[{"c":null},2]}`, "ann"), "r", false},
		"a number as text":          {given("p", `{"a":"1","b":[2,{"c":null}]}`, "ann"), "r", false},
		"an absent member for null": {given("p", `{"a":1,"b":[2,{}]}`, "ann"), "r", false},
		"a part moved elsewhere":    {given("p{", `{"a":1,"b":[2,{"c":null}]}`, "ann"), "r", false},
		"no input":                  {given("p", "", "ann"), "r", false},
	} {
		if got := InputHash(tc.spec, tc.revision); (got == base) != tc.same {
			t.Errorf("%s: the hash is equal: %t, want %t", name, got == base, tc.same)
		}
	}
	if got := InputHash(given("p", `{"a":1,"a":2}`, ""), "r"); got != "" {
		t.Errorf("an input that programs read differently has the hash %s", got)
	}
	if !snapshot.SameInput(given("", "", ""), given("", "{}", "")) || snapshot.SameInput(given("", `{"a":1,"a":1}`, ""), given("", `{"a":1,"a":1}`, "")) {
		t.Error("no input is not an empty one, or what has no canonical form is equal")
	}
}

// reusing is a child Run that has the result of the Run before.
func reusing(r *v1alpha1.Run) {
	r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "before"}
	r.Annotations = map[string]string{v1alpha1.AnnotationReuseOf: "uid-before"}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gen.Run(), v1alpha1.GroupVersion.WithKind("Run"))}
}

// A Run has the result of another only as a child Run, and only of the Run with the UID.
func TestReusedRun(t *testing.T) {
	before := func(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
		return gen.Run(append([]func(*v1alpha1.Run){func(r *v1alpha1.Run) {
			r.Name, r.UID = "before", "uid-before"
			r.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: 7}, Result: &v1alpha1.Result{Committed: true, Reason: "Finished", Text: "done"}}
		}}, mods...)...)
	}
	for name, tc := range map[string]struct {
		run    *v1alpha1.Run
		before *v1alpha1.Run
		want   string // reason; empty: it works itself
	}{
		"a child Run":            {gen.Run(reusing), before(), v1alpha1.ReasonReused},
		"without a parent":       {gen.Run(reusing, func(r *v1alpha1.Run) { r.OwnerReferences = nil }), before(), ""},
		"of a Schedule":          {gen.Run(reusing, func(r *v1alpha1.Run) { r.OwnerReferences[0].Kind = "Schedule" }), before(), ""},
		"without continueFrom":   {gen.Run(reusing, func(r *v1alpha1.Run) { r.Spec.ContinueFrom = nil }), before(), ""},
		"that continues a Run":   {gen.Run(reusing, func(r *v1alpha1.Run) { r.Annotations = nil }), before(), ""},
		"of a deleted Run":       {gen.Run(reusing), nil, v1alpha1.ReasonNothingToContinue},
		"of another of the name": {gen.Run(reusing), before(func(r *v1alpha1.Run) { r.UID = "another" }), v1alpha1.ReasonNothingToContinue},
		"of a Run without any":   {gen.Run(reusing), before(func(r *v1alpha1.Run) { r.Status.Progress.Result = nil }), v1alpha1.ReasonNothingToContinue},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tc.before != nil {
				objects = append(objects, tc.before)
			}
			got := ""
			reused, err := ReusedRun(t.Context(), apierrtest.NewServer(t, objects), tc.run)
			if ReuseOf(tc.run) != "" {
				outcome, progress := Reuse(tc.run, reused)
				got = outcome.Reason
				checkReused(t, progress, tc.want == v1alpha1.ReasonReused)
			}
			if got != tc.want || err != nil {
				t.Errorf("it ends with %q, %v", got, err)
			}
		})
	}
}

// checkReused checks that a progress has the result of the other Run, and no usage.
func checkReused(t *testing.T, p *v1alpha1.RunProgress, want bool) {
	t.Helper()
	if (p != nil) != want || want && (p.Result.Text != "done" || p.Usage.TotalTokens != 0 || p.Version == 0) {
		t.Errorf("its progress is %+v", p)
	}
}
