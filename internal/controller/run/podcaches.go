package run

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
)

// podCaches reads pods from two caches and, if necessary, from the API server.
type podCaches struct {
	client client.Client
	ended  client.Reader // metadata of ended pods; nil: client has all pods
	live   client.Reader
}

// get returns a pod of a Run; false: the caches do not have it. For an ended pod of a Run that has finished, or is
// about to finish with success, it returns only the metadata, which is enough to delete it. Other ended pods are read
// from the API server.
func (p podCaches) get(ctx context.Context, run *v1alpha1.Run, key client.ObjectKey) (pod *corev1.Pod, found bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("getting Pod %s: %w", key.Name, err)
		}
	}()
	pod = &corev1.Pod{}
	if found, err = apierr.Found(p.client.Get(ctx, key, pod)); found || err != nil || p.ended == nil {
		return pod, found, err
	}
	m := objectcache.PodMetadata()
	if found, err = apierr.Found(p.ended.Get(ctx, key, m)); !found || err != nil {
		return nil, false, err
	}
	if run.Status.CompletionTime != nil || hasSucceeded(run) {
		return objectcache.PodFromMetadata(m, run), true, nil
	}
	found, err = apierr.Found(p.live.Get(ctx, key, pod))
	return pod, found, err
}

// hasSucceeded reports whether the runner of the current attempt reported success: then the end of its pod does not
// matter.
func hasSucceeded(run *v1alpha1.Run) bool {
	a, p := run.Status.Attempt, run.Status.Progress
	return a != nil && p != nil && p.Attempt == a.Number && p.Result != nil && p.Result.Committed && p.Result.Reason == v1alpha1.ReasonFinished
}
