package run

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

// maxUnrecorded is how many unrecorded attempts are kept: more than pods are created within recordDelay. The entry of a
// Run that is deleted before it is recorded remains.
const maxUnrecorded = 4096

// unrecorded has the attempts whose pods this process created and has not recorded yet, by the UID of the Run. Attempts
// that are not in it are found by their pods. If a pod is lost before it was recorded, its entry makes it count as
// lost.
type unrecorded struct {
	mu       sync.Mutex
	attempts map[types.UID]unrecordedAttempt
	stopping bool
}

type unrecordedAttempt struct {
	run     client.ObjectKey
	attempt v1alpha1.Attempt
}

func newUnrecorded() *unrecorded { return &unrecorded{attempts: map[types.UID]unrecordedAttempt{}} }

func (u *unrecorded) get(run types.UID) *v1alpha1.Attempt {
	u.mu.Lock()
	defer u.mu.Unlock()
	a, has := u.attempts[run]
	if !has {
		return nil
	}
	return &a.attempt
}

// remember keeps the attempt of a Run. If there are too many entries, any one is dropped, because its attempt can be
// found by its pod.
func (u *unrecorded) remember(run *v1alpha1.Run, a v1alpha1.Attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for uid := range u.attempts {
		if len(u.attempts) < maxUnrecorded {
			break
		}
		delete(u.attempts, uid)
	}
	u.attempts[run.UID] = unrecordedAttempt{client.ObjectKeyFromObject(run), a}
}

func (u *unrecorded) forget(run types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.attempts, run)
}

// stop ends the delay: from now on attempts are recorded immediately. It returns the Runs with unrecorded attempts.
func (u *unrecorded) stop() []client.ObjectKey {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopping = true
	runs := make([]client.ObjectKey, 0, len(u.attempts))
	for _, a := range u.attempts {
		runs = append(runs, a.run)
	}
	return runs
}

func (u *unrecorded) isStopping() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stopping
}

// recordTimeout bounds how long attempts are recorded after the operator is stopped. It is less than the 30 s that the
// manager waits for its runnables.
const recordTimeout = 10 * time.Second

// recordOnStop waits until the operator is stopped and then records all unrecorded attempts. Otherwise the next
// operator, which may have another version, would have to find and compare their pods.
func (r *Reconciler) recordOnStop(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(defaultConcurrency)
	for _, key := range r.unrecorded.stop() {
		all.Go(func() error { return r.recordNow(ctx, key) })
	}
	return all.Wait()
}

// recordNow reconciles a Run once. After a conflict the status was written by another process.
func (r *Reconciler) recordNow(ctx context.Context, key client.ObjectKey) error {
	var run v1alpha1.Run
	found, err := apierr.Found(r.client.Get(ctx, key, &run))
	if found && err == nil {
		_, err = r.Reconcile(ctx, &run)
	}
	if err == nil || apierr.IsConflict(err) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("recording the attempt of Run %s: %w", key, err)
}
