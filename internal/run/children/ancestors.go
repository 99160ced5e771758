package children

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// ParentOf returns the Run that another is a part of; nil: there is none. An admission policy
// keeps users from creating Runs that name a parent.
func ParentOf(run *v1alpha1.Run) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.Kind != "Run" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return nil
	}
	return owner
}

// FixedRevision returns the hash of the revision that a child Run was created for; empty: it runs
// the current one. The annotation counts only if a Run is the controller.
func FixedRevision(run *v1alpha1.Run) string {
	if ParentOf(run) == nil {
		return ""
	}
	return run.Annotations[v1alpha1.AnnotationRevisionHash]
}

// maxLineage is how many ancestors are looked up: one more than there can be.
const maxLineage = 6

// Ancestor is a Run that another is a part of.
type Ancestor struct {
	UID types.UID
	Run *v1alpha1.Run // nil: gone
}

// Ancestors returns the Runs that a Run is a part of, the nearest first.
func Ancestors(ctx context.Context, from client.Reader, run *v1alpha1.Run) ([]Ancestor, error) {
	var out []Ancestor
	for run != nil && len(out) < maxLineage {
		owner := ParentOf(run)
		if owner == nil {
			return out, nil
		}
		next := Ancestor{UID: owner.UID}
		var found v1alpha1.Run
		err := from.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: owner.Name}, &found)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("getting Run %s: %w", owner.Name, err)
		case found.UID == owner.UID:
			next.Run = &found
		}
		out, run = append(out, next), next.Run
	}
	return out, nil
}
