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

func (*fakeLock) Identity() string { return "deckhand-0_2" }

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
			l := newEarlyLock(t.Context(), f, "", 10*time.Second, func() time.Time { return now })
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

func TestEarlyLockHasNoHolderWhenAnEarlierProcessOfThePodHeldIt(t *testing.T) {
	cases := map[string]struct{ pod, holder, want string }{
		"an earlier process of the pod": {"deckhand-0", "deckhand-0_1", ""},
		"this process":                  {"deckhand-0", "deckhand-0_2", "deckhand-0_2"},
		"another pod":                   {"deckhand-0", "deckhand-01_1", "deckhand-01_1"},
		"a pod that is not known":       {"", "deckhand-0_1", "deckhand-0_1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			f := &fakeLock{record: resourcelock.LeaderElectionRecord{HolderIdentity: tc.holder, LeaseDurationSeconds: 3600}}
			l := newEarlyLock(t.Context(), f, tc.pod, time.Hour, func() time.Time { return time.Date(2030, 1, 1, 12, 0, 0, 0, time.UTC) })
			record, _, err := l.Get(t.Context())
			if err != nil || record.HolderIdentity != tc.want {
				t.Errorf("the holder is %q (%v), want %q", record.HolderIdentity, err, tc.want)
			}
		})
	}
}
