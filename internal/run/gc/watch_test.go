package gc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestWhichVersionARunNeeds(t *testing.T) {
	now := metav1.NewTime(gen.Noon)
	annotated := func(r *v1alpha1.Run) {
		r.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: "annotated"}
	}
	attempted := func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{AgentRevision: "attempted"} }
	versioned := func(r *v1alpha1.Run) { r.Status.WorkflowRevision = "versioned" }
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
			if diff := cmp.Diff(tc.want, IndexUnfinishedRun(gen.Run(tc.mods...))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
