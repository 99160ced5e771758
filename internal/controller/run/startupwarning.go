package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// eventDelay is how long a pod may take to start before its events are read.
	eventDelay = 20 * time.Second
	// maxWarning bounds how much of an event a message repeats.
	maxWarning = 512
	// maxEvents is the maximum number of events that are read.
	maxEvents = 50
)

// isSilent reports whether a pod has not started for a while, and no container status has a cause, as with volumes that
// cannot be mounted.
func isSilent(s state, delay time.Duration) bool {
	pod := s.pod()
	if !runnerpod.IsAlive(pod) || s.progress() != nil || pod.DeletionTimestamp != nil || gated(pod) {
		return false
	}
	started := slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(container corev1.ContainerStatus) bool {
		return container.State.Running != nil || container.State.Terminated != nil
	})
	return !started && stuckContainer(pod) == nil && s.now.Sub(pod.CreationTimestamp.Time) >= delay
}

// observeStartupWarning returns the last warning about a pod that does not start, or about its volume; empty: there is
// none. A warning about the volume comes first, because a volume that cannot be provisioned also keeps the pod from
// being scheduled.
func (r *Reconciler) observeStartupWarning(ctx context.Context, s state) (string, error) {
	if s.missingConfigMap != "" || !isSilent(s, eventDelay) {
		return "", nil
	}
	pod := s.pod()
	if s.volume != nil && s.volume.Status.Phase != corev1.ClaimBound {
		if text, err := r.lastWarning(ctx, pod.Namespace, s.volume.UID); text != "" || err != nil {
			return text, err
		}
	}
	return r.lastWarning(ctx, pod.Namespace, pod.UID)
}

// lastWarning returns the last warning about an object.
func (r *Reconciler) lastWarning(ctx context.Context, namespace string, uid types.UID) (string, error) {
	var list corev1.EventList
	about := client.MatchingFields{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}
	if err := r.live.List(ctx, &list, client.InNamespace(namespace), about, client.Limit(maxEvents)); err != nil {
		return "", fmt.Errorf("listing Events: %w", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	last := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	text := strings.Join(strings.Fields(sentence(last.Reason, last.Message)), " ")
	return task.Cut(text, maxWarning), nil
}

// lastSeen returns when an event was last seen. The creation time counts only if its writer
// gave no time.
func lastSeen(e corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	if at.IsZero() {
		at = e.CreationTimestamp.Time
	}
	return at
}
