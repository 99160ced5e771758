package agent

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
)

func TestWhichVersionARunNeeds(t *testing.T) {
	now := metav1.NewTime(gen.Noon)
	annotated := func(r *v1alpha1.Run) {
		r.Annotations = map[string]string{v1alpha1.AnnotationVersion: "annotated"}
	}
	attempted := func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Agent: "attempted"} }
	versioned := func(r *v1alpha1.Run) { r.Status.Version = "versioned" }
	finished := func(r *v1alpha1.Run) { r.Status.CompletionTime = &now }
	cases := map[string]struct {
		mods []func(*v1alpha1.Run)
		want []string
	}{
		"one that has not begun needs the current one":   {nil, nil},
		"one that has begun needs what it began with":    {[]func(*v1alpha1.Run){attempted}, []string{"attempted"}},
		"a child that has not begun what it is told":     {[]func(*v1alpha1.Run){annotated}, []string{"annotated"}},
		"a child that has begun what it began with":      {[]func(*v1alpha1.Run){annotated, attempted}, []string{"attempted"}},
		"one of a Workflow that of the Workflow":         {[]func(*v1alpha1.Run){versioned}, []string{"versioned"}},
		"one that has finished needs none":               {[]func(*v1alpha1.Run){attempted, finished}, nil},
		"a child that has finished needs none":           {[]func(*v1alpha1.Run){annotated, finished}, nil},
		"one of a Workflow that has finished needs none": {[]func(*v1alpha1.Run){versioned, finished}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, UnfinishedByVersion(gen.Run(tc.mods...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What a stored version of a Workflow names stays, and is looked at again when
// that one goes.
func TestWhatAWorkflowNeeds(t *testing.T) {
	needed, unneeded := version(t, gen.Agent(otherwise), time.Hour), version(t, gen.Agent(), time.Hour)
	holder := corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: gen.Namespace, Name: "deckhand-holder",
		Labels:      map[string]string{v1alpha1.LabelSnapshot: "true", v1alpha1.LabelWorkflow: "release"},
		Annotations: map[string]string{"deckhand.dev/versions": snapshot.HashOf(&needed) + ",gone"},
	}}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&holder, &needed, &unneeded).
		WithIndex(&v1alpha1.Run{}, ByVersion, UnfinishedByVersion).Build()
	r := New(c, func() time.Time { return gen.Noon })
	key := client.ObjectKey{Namespace: gen.Namespace, Name: "fixer"}
	w, err := r.look(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{needed.Name: false, unneeded.Name: true}, w.unused); diff != "" {
		t.Errorf("unused -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(requests(gen.Namespace, []string{"fixer"}), r.neededBy(t.Context(), &holder)); diff != "" {
		t.Errorf("looked at again -want +got:\n%s", diff)
	}
}
