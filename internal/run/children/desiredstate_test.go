package children

import (
	"context"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A Run that is paused with its parent says which Run to resume: its own state would be set back.
func TestPausedMessage(t *testing.T) {
	const own = "Paused by spec.desiredState. To resume: kubectl deckhand resume x, or set it to Running"
	mark := func(r *v1alpha1.Run) { r.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"} }
	child := func(r *v1alpha1.Run) {
		parent := gen.Run(func(r *v1alpha1.Run) { r.Name = "lead" })
		r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parent, v1alpha1.GroupVersion.WithKind("Run"))}
	}
	for name, tc := range map[string]struct {
		run  *v1alpha1.Run
		want string
	}{
		"a user paused it":                {gen.Run(), own},
		"a user paused a child":           {gen.Run(child), own},
		"its parent paused it":            {gen.Run(child, mark), "Paused together with Run lead, which it is a part of. Resume that Run"},
		"somebody wrote the mark himself": {gen.Run(mark), own},
	} {
		t.Run(name, func(t *testing.T) {
			if got := PausedMessage(tc.run); got != tc.want {
				t.Errorf("PausedMessage() = %q, want %q", got, tc.want)
			}
		})
	}
}

// patches records patches, and answers each with an error.
type patches struct {
	client.Client

	answer error
	got    []string
}

func (p *patches) Patch(_ context.Context, o client.Object, patch client.Patch, _ ...client.PatchOption) error {
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	p.got = append(p.got, o.GetNamespace()+"/"+o.GetName()+" "+string(patch.Type())+" "+string(data))
	return p.answer
}

// Each patch names the Run and its UID: another Run of the name is not stopped.
func TestSetStates(t *testing.T) {
	a, b, c := gen.Run(named("a")), gen.Run(named("b")), gen.Run(named("c"))
	c.Namespace = "team-b"
	changes := []StateChange{
		{Child: a, To: v1alpha1.DesiredStopped},
		{Child: b, To: v1alpha1.DesiredPaused, PausedByParent: true},
		{Child: c, To: v1alpha1.DesiredRunning},
	}
	server := &patches{}
	if err := SetStates(t.Context(), server, changes); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`team-a/a application/merge-patch+json {"metadata":{"annotations":{"deckhand.dev/paused":null},"uid":"a-uid"},"spec":{"desiredState":"Stopped"}}`,
		`team-a/b application/merge-patch+json {"metadata":{"annotations":{"deckhand.dev/paused":"true"},"uid":"b-uid"},"spec":{"desiredState":"Paused"}}`,
		`team-b/c application/merge-patch+json {"metadata":{"annotations":{"deckhand.dev/paused":null},"uid":"c-uid"},"spec":{"desiredState":"Running"}}`,
	}
	if diff := cmp.Diff(want, server.got); diff != "" {
		t.Errorf("patches -want +got:\n%s", diff)
	}
}

// A child that is gone needs no other state; any other answer is an error.
func TestSetStatesOfAChildThatIsGone(t *testing.T) {
	runs := schema.GroupResource{Group: v1alpha1.GroupVersion.Group, Resource: "runs"}
	changes := []StateChange{{Child: gen.Run(named("a")), To: v1alpha1.DesiredStopped}, {Child: gen.Run(named("b")), To: v1alpha1.DesiredStopped}}
	gone := &patches{answer: apierrors.NewNotFound(runs, "a")}
	if err := SetStates(t.Context(), gone, changes); err != nil || len(gone.got) != 2 {
		t.Errorf("of Runs that are gone %d are patched: %v", len(gone.got), err)
	}
	other := &patches{answer: apierrors.NewConflict(runs, "a", nil)}
	if err := SetStates(t.Context(), other, changes); !apierrors.IsConflict(err) {
		t.Errorf("of another Run of the name: %v", err)
	}
}

func TestStopAndPause(t *testing.T) {
	state := func(s v1alpha1.DesiredState) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) { r.Spec.DesiredState = s }
	}
	ended := func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} }
	deleted := func(r *v1alpha1.Run) { r.DeletionTimestamp = &metav1.Time{Time: gen.Noon} }
	byParent := func(r *v1alpha1.Run) { r.Annotations = map[string]string{v1alpha1.AnnotationPaused: "true"} }
	type change struct {
		to   v1alpha1.DesiredState // empty: none
		mark bool
	}
	cases := map[string]struct {
		run                 *v1alpha1.Run
		stop, pause, resume change
	}{
		"one that runs":              {gen.Run(), change{to: v1alpha1.DesiredStopped}, change{v1alpha1.DesiredPaused, true}, change{}},
		"one that a user paused":     {gen.Run(state(v1alpha1.DesiredPaused)), change{to: v1alpha1.DesiredStopped}, change{}, change{}},
		"one that its parent paused": {gen.Run(state(v1alpha1.DesiredPaused), byParent), change{to: v1alpha1.DesiredStopped}, change{}, change{to: v1alpha1.DesiredRunning}},
		"one that is to stop":        {gen.Run(state(v1alpha1.DesiredStopped), byParent), change{}, change{}, change{}},
		"one that ended":             {gen.Run(ended, byParent), change{}, change{}, change{}},
		"one that is being deleted":  {gen.Run(deleted, byParent), change{}, change{}, change{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			made := func(c StateChange, ok bool) change {
				if ok && c.Child != tc.run {
					t.Errorf("it is a change of %v", c.Child)
				}
				return change{c.To, c.PausedByParent}
			}
			got := []change{made(Stop(tc.run)), made(Pause(tc.run, true)), made(Pause(tc.run, false))}
			if want := []change{tc.stop, tc.pause, tc.resume}; !slices.Equal(want, got) {
				t.Errorf("stop, pause, resume: %v, want %v", got, want)
			}
		})
	}
}
