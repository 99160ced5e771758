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

	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// patient is how long a pod may start without anybody asking why it does not.
	patient = 20 * time.Second
	// maxTrouble bounds what is repeated of an event.
	maxTrouble = 512
	// maxEvents is how many events are read.
	maxEvents = 50
)

// mute says whether a pod that does not start says nothing of why: its volumes may
// not be there, and of those only events tell.
func mute(w world) bool {
	pod := w.pod()
	if !runnerpod.IsAlive(pod) || w.progress() != nil || pod.DeletionTimestamp != nil || gated(pod) {
		return false
	}
	started := slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(s corev1.ContainerStatus) bool {
		return s.State.Running != nil || s.State.Terminated != nil
	})
	return !started && stuckContainer(pod) == nil && w.now.Sub(pod.CreationTimestamp.Time) >= patient
}

// troubles are what the cluster says of a pod that does not start, or of its
// claim; empty: nothing. A claim that cannot be had is why its pod is not placed:
// what is said of it comes first.
func (r *Reconciler) troubles(ctx context.Context, w world) (string, error) {
	if !mute(w) {
		return "", nil
	}
	pod := w.pod()
	if w.claim != nil && w.claim.Status.Phase != corev1.ClaimBound {
		if text, err := r.warning(ctx, pod.Namespace, w.claim.UID); text != "" || err != nil {
			return text, err
		}
	}
	return r.warning(ctx, pod.Namespace, pod.UID)
}

// warning is the last warning about an object.
func (r *Reconciler) warning(ctx context.Context, namespace string, uid types.UID) (string, error) {
	var list corev1.EventList
	about := client.MatchingFields{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}
	if err := r.live.List(ctx, &list, client.InNamespace(namespace), about, client.Limit(maxEvents)); err != nil {
		return "", fmt.Errorf("listing Events: %w", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	last := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return happened(a).Compare(happened(b)) })
	text := strings.Join(strings.Fields(sentence(last.Reason, last.Message)), " ")
	return task.Cut(text, maxTrouble), nil
}

// happened is when an event was last seen, whoever wrote it. The clock of the API
// server, which says when it was created, counts only where its writer gave no time.
func happened(e corev1.Event) time.Time {
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
