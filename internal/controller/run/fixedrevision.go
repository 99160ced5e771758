package run

import (
	"context"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
)

// fixedRevision is the version that a Run was made for, being a part of another that
// froze it; empty: it takes the current one of its Agent. The annotation is
// believed of what a Run controls alone.
func fixedRevision(run *v1alpha1.Run) string {
	if children.ParentOf(run) == nil {
		return ""
	}
	return run.Annotations[v1alpha1.AnnotationRevisionHash]
}

// fixedRevision is the version that a Run was made for. One that is gone does not come
// back.
func (r *Reconciler) fixedRevision(ctx context.Context, run *v1alpha1.Run) (*snapshot.Version, string, error) {
	hash := fixedRevision(run)
	v, err := r.storedRevision(ctx, run.Namespace, hash)
	if v != nil || err != nil {
		return v, "", err
	}
	return nil, fmt.Sprintf("The revision of Agent %s that this Run was created for was deleted (ConfigMap %s). Create a new Run of the workflow", run.Spec.Agent, snapshot.Name(hash)), nil
}
