package children

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// A Run that is paused with its parent says which Run to resume: its own state would be set back.
func TestPausedMessage(t *testing.T) {
	const own = "Paused by spec.desiredState. Set it to Running to resume"
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
