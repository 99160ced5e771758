//go:build e2e && soak

package e2e

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/test/soak"
)

// observeEvery is how often the Run and its pods are looked at. A watch would not outlive the
// API server.
const observeEvery = 100 * time.Millisecond

// observe checks the invariants again and again until stop is called.
func (r *soakRun) observe(run *v1alpha1.Run) (stop func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	o := &soakObserver{soakRun: r, attempts: map[int32]string{}}
	go func() {
		defer close(done)
		tick := time.NewTicker(observeEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			o.look(ctx, client.ObjectKeyFromObject(run))
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
	}()
	return func() { cancel(); <-done }
}

// A soakObserver keeps what it saw last.
type soakObserver struct {
	*soakRun
	attempts map[int32]string // UIDs of the pods by attempt, as recorded
	last     int32
	end      string
}

// look compares the Run with what was seen before. While the API server is away it sees nothing.
func (o *soakObserver) look(ctx context.Context, key types.NamespacedName) {
	var pods corev1.PodList
	if cluster.admin.List(ctx, &pods, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelRun: key.Name}) == nil {
		o.checkPods(pods.Items)
	}
	var run v1alpha1.Run
	if cluster.admin.Get(ctx, key, &run) != nil {
		return
	}
	if data, err := json.Marshal(&run); err != nil || len(data) >= soak.MaxRun {
		o.violated(soak.Size, "it has %d bytes (%v)", len(data), err)
	}
	o.checkAttempt(run.Status.Attempt)
	o.checkEnd(&run)
}

func (o *soakObserver) checkPods(pods []corev1.Pod) {
	live := slices.DeleteFunc(pods, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	})
	if len(live) > 1 {
		o.violated(soak.OneLivePod, "the pods %s and %s are live", live[0].Name, live[1].Name)
	}
}

func (o *soakObserver) checkAttempt(a *v1alpha1.Attempt) {
	if a == nil || a.PodUID == "" {
		return
	}
	if was, known := o.attempts[a.Number]; known && was != a.PodUID || a.Number < o.last {
		o.violated(soak.AttemptsOnce, "attempt %d has the pod %s, after pod %q and attempt %d", a.Number, a.PodUID, was, o.last)
	}
	o.attempts[a.Number], o.last = a.PodUID, a.Number
}

func (o *soakObserver) checkEnd(run *v1alpha1.Run) {
	now := ""
	if finished(run) {
		now = run.Status.CompletionTime.String() + " " + succeeded(run)
	}
	if o.end != "" && o.end != now {
		o.violated(soak.TerminalOnce, "it had ended %s and is %q", o.end, now)
	}
	o.end = now
}

// checkDeletion deletes the Run, and waits until nothing of it is left.
func (r *soakRun) checkDeletion(run *v1alpha1.Run) {
	left := 0
	err := until(r.t.Context(), func(ctx context.Context) (bool, error) {
		if err := client.IgnoreNotFound(cluster.admin.Delete(ctx, run)); err != nil {
			return false, err
		}
		left = 0
		for _, list := range []client.ObjectList{&v1alpha1.RunList{}, &corev1.PodList{}, &corev1.PersistentVolumeClaimList{}} {
			n, err := count(ctx, list, client.InNamespace(run.Namespace))
			if err != nil {
				return false, err
			}
			left += n
		}
		return left == 1, nil // the pod of the model server
	})
	if err != nil {
		r.violated(soak.NothingLeft, "after it was deleted there are %d objects, want only the pod of the model server: %v", left, err)
	}
}

// count is how many objects a list has.
func count(ctx context.Context, list client.ObjectList, which ...client.ListOption) (int, error) {
	if err := cluster.admin.List(ctx, list, which...); err != nil {
		return 0, err
	}
	return meta.LenList(list), nil
}
