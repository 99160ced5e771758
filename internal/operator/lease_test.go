package operator

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// fakeLock is a lock in memory.
type fakeLock struct {
	resourcelock.Interface
	record resourcelock.LeaderElectionRecord
}

func (f *fakeLock) Get(context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	raw, err := json.Marshal(f.record)
	record := f.record
	return &record, raw, err
}

func TestEarlyLockHasNoHolderOnceTheLeaseExpired(t *testing.T) {
	cases := map[string]struct {
		after   time.Duration
		renewed bool
		want    string
	}{
		"before it expired":              {9 * time.Second, false, "killed"},
		"when it expired":                {11 * time.Second, false, ""},
		"when its holder renewed it":     {11 * time.Second, true, "killed"},
		"long after, and it was renewed": {time.Hour, true, "killed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC)
			f := &fakeLock{record: resourcelock.LeaderElectionRecord{HolderIdentity: "killed", LeaseDurationSeconds: 10}}
			l := newEarlyLock(t.Context(), f, 10*time.Second, func() time.Time { return now })
			now = now.Add(tc.after)
			if tc.renewed {
				f.record.RenewTime.Time = now
			}
			record, _, err := l.Get(t.Context())
			if err != nil || record.HolderIdentity != tc.want {
				t.Errorf("the holder is %q (%v), want %q", record.HolderIdentity, err, tc.want)
			}
		})
	}
}
