package operator

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// earlyLock is a lock that detects a dead holder earlier than client-go does.
//
// It is read when the process starts. client-go takes over a lease that was not renewed for its duration, counted from
// when client-go first read it. A manager lets client-go read it only after the caches have synced, so the operator
// would wait for the caches and then for the duration.
//
// A holder in the pod of this process is an earlier process of the same container, which has ended: the kubelet starts
// another one only then.
type earlyLock struct {
	resourcelock.Interface
	pod      string // whose container this process is; empty: not known
	duration time.Duration
	now      func() time.Time
	first    []byte // the record when it was first read; nil: there was none
	readAt   time.Time
}

func newEarlyLock(ctx context.Context, lock resourcelock.Interface, pod string, duration time.Duration, now func() time.Time) *earlyLock {
	l := &earlyLock{Interface: lock, pod: pod, duration: duration, now: now, readAt: now()}
	if _, raw, err := lock.Get(ctx); err == nil { // otherwise client-go's own count is enough
		l.first = raw
	}
	return l
}

// Get reads the lock. It has no holder if its record has not changed for the duration of
// the lease, or if an earlier process of this container holds it.
func (l *earlyLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err != nil {
		return record, raw, err
	}
	expired := bytes.Equal(raw, l.first) && l.now().Sub(l.readAt) > l.duration
	ended := l.pod != "" && record.HolderIdentity != l.Identity() && strings.HasPrefix(record.HolderIdentity, l.pod+separator)
	if expired || ended {
		record.HolderIdentity = ""
	}
	return record, raw, nil
}

// separator ends the name of the pod or host in the identity of a holder. Names do not have it.
const separator = "_"

// leaderLock returns the lock of the operator's lease; nil: the manager makes one.
func leaderLock(ctx context.Context, cfg *rest.Config, o Options, lease Lease) (resourcelock.Interface, error) {
	if !o.LeaderElection || o.Namespace == "" {
		return nil, nil //nolint:nilnil // nil has a meaning of its own
	}
	where := o.Pod
	if where == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("reading the host name: %w", err)
		}
		where = host
	}
	identity := resourcelock.ResourceLockConfig{Identity: where + separator + string(uuid.NewUUID())}
	lock, err := resourcelock.NewFromKubeconfig(resourcelock.LeasesResourceLock, o.Namespace, leaseName(o), identity, cfg, lease.RenewDeadline)
	if err != nil {
		return nil, fmt.Errorf("making the lock of lease %s: %w", leaseName(o), err)
	}
	return newEarlyLock(ctx, lock, o.Pod, lease.Duration, clock.Now), nil
}

// A manager that stops releases its lease last, and logs that as an error (sigs.k8s.io/controller-runtime/pkg/manager,
// engageStopProcedure). If it loses its lease in another way, Start returns an error with the same text.
const (
	stopping = "error received after stop sequence was engaged"
	released = "leader election lost"
)

// withoutLeaseError returns a logger that does not log a lease that was given up as an error.
func withoutLeaseError(l logr.Logger) logr.Logger {
	if l.GetSink() == nil {
		return l
	}
	return l.WithSink(leaseSink{l.GetSink()})
}

type leaseSink struct{ logr.LogSink }

func (s leaseSink) Error(err error, message string, keysAndValues ...any) {
	if message == stopping && err != nil && err.Error() == released {
		s.Info(0, "The lease was given up")
		return
	}
	s.LogSink.Error(err, message, keysAndValues...)
}

func (s leaseSink) WithValues(keysAndValues ...any) logr.LogSink {
	return leaseSink{s.LogSink.WithValues(keysAndValues...)}
}

func (s leaseSink) WithName(name string) logr.LogSink { return leaseSink{s.LogSink.WithName(name)} }
