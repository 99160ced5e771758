package operator

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/deckhand-dev/deckhand/internal/clock"
)

// earlyLock is a lock that is read when the process starts. client-go takes a lease over
// from a holder that has not renewed it for the duration of the lease, which it counts
// from when it first read the lease. A manager has client-go read it after the caches
// have synced: so the operator would wait for one and then for the other.
type earlyLock struct {
	resourcelock.Interface
	duration time.Duration
	now      func() time.Time
	first    []byte // the record when it was first read; nil: there was none
	readAt   time.Time
}

func newEarlyLock(ctx context.Context, lock resourcelock.Interface, duration time.Duration, now func() time.Time) *earlyLock {
	l := &earlyLock{Interface: lock, duration: duration, now: now, readAt: now()}
	if _, raw, err := lock.Get(ctx); err == nil { // otherwise client-go's own count is enough
		l.first = raw
	}
	return l
}

// Get reads the lock. A record that nobody changed for the duration of the lease has no
// holder.
func (l *earlyLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && bytes.Equal(raw, l.first) && l.now().Sub(l.readAt) > l.duration {
		record.HolderIdentity = ""
	}
	return record, raw, err
}

// leaderLock is the lock of the operator's lease; nil: the manager makes one.
func leaderLock(ctx context.Context, cfg *rest.Config, o Options, lease Lease) (resourcelock.Interface, error) {
	if !o.LeaderElection || o.Namespace == "" {
		return nil, nil //nolint:nilnil // nil has a meaning of its own
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("reading the host name: %w", err)
	}
	identity := resourcelock.ResourceLockConfig{Identity: host + "_" + string(uuid.NewUUID())}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.Namespace, leaseName(o), identity, cfg, lease.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("making the lock of lease %s: %w", leaseName(o), err)
	}
	return newEarlyLock(ctx, lock, lease.Duration, clock.Now), nil
}
