package attempt

import (
	"log/slog"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// newAttemptWaitingForKey is an attempt whose key comes after a while.
func newAttemptWaitingForKey(after time.Duration) *attempt {
	began := time.Now()
	return &attempt{
		Environment: Environment{
			Now: time.Now, Log: slog.New(slog.DiscardHandler),
			Key: func(task.SecretKey) func() (string, error) {
				return func() (string, error) {
					if time.Since(began) < after {
						return "", os.ErrNotExist
					}
					return secret, nil
				}
			},
		},
		began:    began,
		snapshot: task.Snapshot{Models: []task.Model{{Name: "m", SecretKey: task.SecretKey{Secret: "anthropic", Key: "api-key"}}}},
	}
}

// limits.duration is for work: what a runner waits for a Secret is not counted.
func TestWaitingForAKeyIsNoDuration(t *testing.T) {
	t.Run("a key that comes late", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newAttemptWaitingForKey(9 * time.Second)
			if err := w.awaitKeys(t.Context()); err != nil {
				t.Fatal(err)
			}
			if lived := time.Since(w.began); lived >= time.Second {
				t.Errorf("the work began %s ago", lived)
			}
		})
	})
	t.Run("a key that never comes", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			w := newAttemptWaitingForKey(time.Hour)
			err := w.awaitKeys(t.Context())
			out := w.failed(err)
			if used := out.Progress.Usage.DurationSeconds; out.Reason != task.ReasonSecretMissing || used != 0 {
				t.Errorf("it ends with %s after %d s of limits.duration, want SecretMissing after 0", out.Reason, used)
			}
		})
	})
}
