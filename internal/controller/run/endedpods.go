package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/objectcache"
)

// cachedPod gets a pod of a Run; nil: the caches have none. Of an ended pod of a
// finished Run it is only the metadata, which is all that deleting it needs. An ended
// pod of another Run is read from the API server.
func (r *Reconciler) cachedPod(ctx context.Context, run *v1alpha1.Run, key client.ObjectKey) (*corev1.Pod, error) {
	var pod corev1.Pod
	err := r.client.Get(ctx, key, &pod)
	if err == nil || !apierrors.IsNotFound(err) || r.ended == nil {
		return ignoreMissingPod(&pod, key, err)
	}
	m := objectcache.PodMetadata()
	if err := r.ended.Get(ctx, key, m); err != nil {
		return ignoreMissingPod(nil, key, err)
	}
	if run.Status.CompletionTime == nil {
		return ignoreMissingPod(&pod, key, r.live.Get(ctx, key, &pod))
	}
	return objectcache.PodFromMetadata(m, run), nil
}

// ignoreMissingPod returns the pod that was got; nil: there is none.
func ignoreMissingPod(pod *corev1.Pod, key client.ObjectKey, err error) (*corev1.Pod, error) {
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absent is a fact, not a fault
	case err != nil:
		return nil, fmt.Errorf("getting Pod %s: %w", key.Name, err)
	}
	return pod, nil
}
