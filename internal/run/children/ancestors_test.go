package children

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// named gives a Run a name, and a UID that is its name with -uid.
func named(name string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.Name, r.UID, r.ResourceVersion = name, types.UID(name+"-uid"), "" }
}

// ownedBy gives a Run an owner.
func ownedBy(owner metav1.OwnerReference) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) { r.OwnerReferences = append(r.OwnerReferences, owner) }
}

// owner returns the reference to a controller of the kind Run, as named makes it.
func owner(name string) metav1.OwnerReference {
	return *metav1.NewControllerRef(gen.Run(named(name)), v1alpha1.GroupVersion.WithKind("Run"))
}

// strangers are owners that are no parents of a Run.
func strangers() map[string]metav1.OwnerReference {
	foreign, other, loose := owner("lead"), owner("lead"), owner("lead")
	foreign.APIVersion = "tekton.dev/v1"
	other.Kind = "Workflow"
	loose.Controller = nil
	alike := owner("lead")
	alike.APIVersion = v1alpha1.GroupVersion.Group + ".example/v1alpha1"
	return map[string]metav1.OwnerReference{
		"a Run of another group": foreign, "a group that begins alike": alike, "another kind": other, "an owner that does not control it": loose,
	}
}

func TestParentOf(t *testing.T) {
	if got := ParentOf(gen.Run()); got != nil {
		t.Errorf("a Run without owners is a part of %v", got)
	}
	for name, ref := range strangers() {
		if got := ParentOf(gen.Run(ownedBy(ref))); got != nil {
			t.Errorf("%s is taken for the parent", name)
		}
	}
	later := owner("lead")
	later.APIVersion = v1alpha1.GroupVersion.Group + "/v1"
	for _, ref := range []metav1.OwnerReference{owner("lead"), later} {
		if got := ParentOf(gen.Run(ownedBy(ref))); got == nil || got.Name != "lead" {
			t.Errorf("the Run that %s %s controls is a part of %v", ref.APIVersion, ref.Name, got)
		}
	}
}

// A user may write any annotation: it chooses a revision only for a child Run.
func TestFixedRevision(t *testing.T) {
	marked := func(r *v1alpha1.Run) { r.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: "h"} }
	if got := FixedRevision(gen.Run(marked)); got != "" {
		t.Errorf("a Run without a parent runs the revision %q", got)
	}
	for name, ref := range strangers() {
		if got := FixedRevision(gen.Run(marked, ownedBy(ref))); got != "" {
			t.Errorf("with %s it runs the revision %q", name, got)
		}
	}
	if got := FixedRevision(gen.Run(marked, ownedBy(owner("lead")))); got != "h" {
		t.Errorf("a child Run runs the revision %q, want h", got)
	}
	if got := FixedRevision(gen.Run(ownedBy(owner("lead")))); got != "" {
		t.Errorf("a child Run without the annotation runs the revision %q", got)
	}
}

func TestAncestors(t *testing.T) {
	elsewhere := func(r *v1alpha1.Run) { r.Namespace = "team-b" }
	again := func(r *v1alpha1.Run) { r.UID = "again" }
	cases := map[string]struct {
		exist []client.Object
		run   *v1alpha1.Run
		want  []string // names, or the UID in brackets if it is gone
	}{
		"no parent":                      {nil, gen.Run(named("x")), nil},
		"a parent and its parent":        {[]client.Object{gen.Run(named("a"), ownedBy(owner("b"))), gen.Run(named("b"))}, gen.Run(named("x"), ownedBy(owner("a"))), []string{"a", "b"}},
		"a parent that is gone":          {nil, gen.Run(named("x"), ownedBy(owner("a"))), []string{"(a-uid)"}},
		"a parent whose parent is gone":  {[]client.Object{gen.Run(named("a"), ownedBy(owner("b")))}, gen.Run(named("x"), ownedBy(owner("a"))), []string{"a", "(b-uid)"}},
		"another Run of the name":        {[]client.Object{gen.Run(named("a"), again, ownedBy(owner("b"))), gen.Run(named("b"))}, gen.Run(named("x"), ownedBy(owner("a"))), []string{"(a-uid)"}},
		"a Run of the name elsewhere":    {[]client.Object{gen.Run(named("a"), elsewhere)}, gen.Run(named("x"), ownedBy(owner("a"))), []string{"(a-uid)"}},
		"Runs that own each other end":   {[]client.Object{gen.Run(named("a"), ownedBy(owner("b"))), gen.Run(named("b"), ownedBy(owner("a")))}, gen.Run(named("x"), ownedBy(owner("a"))), []string{"a", "b", "a", "b", "a", "b"}},
		"a controller of another kind":   {nil, gen.Run(named("x"), ownedBy(strangers()["another kind"])), nil},
		"an owner that does not control": {nil, gen.Run(named("x"), ownedBy(strangers()["an owner that does not control it"])), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ancestors, err := Ancestors(t.Context(), cluster(t, tc.exist...), tc.run)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, a := range ancestors {
				if a.Run == nil {
					got = append(got, "("+string(a.UID)+")")
				} else if got = append(got, a.Run.Name); a.UID != a.Run.UID {
					t.Errorf("%s has the UID %s, want %s", a.Run.Name, a.UID, a.Run.UID)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("ancestors -want +got:\n%s", diff)
			}
		})
	}
}

// What cannot be read is not gone.
func TestAncestorsThatCannotBeRead(t *testing.T) {
	empty := fake.NewClientBuilder().WithScheme(runtime.NewScheme()).Build() // it does not know Runs
	got, err := Ancestors(t.Context(), empty, gen.Run(ownedBy(owner("a"))))
	if err == nil || got != nil || errors.Unwrap(err) == nil {
		t.Errorf("Ancestors() = %v, %v", got, err)
	}
}

// cluster has Runs.
func cluster(t *testing.T, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}
