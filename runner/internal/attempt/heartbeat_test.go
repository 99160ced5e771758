package attempt

import (
	"context"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// terminationFile is a termination message as the kubelet makes it: an empty file.
func terminationFile(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "termination-log")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func contents(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestProbe(t *testing.T) {
	own := string(task.Termination{Version: task.Version, Attempt: 1, Result: task.Result{Reason: task.ReasonInterrupted}}.Encode())
	for name, tc := range map[string]struct {
		said string
		age  time.Duration
		want int
		left string
	}{
		"a heartbeat that is young":         {"", heartbeatMaxAge, 0, ""},
		"a heartbeat that is old":           {"", heartbeatMaxAge + time.Second, 1, string(hungTermination)},
		"no heartbeat since the last probe": {string(hungTermination), 0, 1, string(hungTermination)},
		"a runner that has left its result": {own, time.Hour, 0, own},
		"a clock that was put back":         {"", -time.Hour, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			path := terminationFile(t)
			if err := os.WriteFile(path, []byte(tc.said), 0o600); err != nil {
				t.Fatal(err)
			}
			now := time.Now()
			if err := os.Chtimes(path, now, now.Add(-tc.age)); err != nil {
				t.Fatal(err)
			}
			if got := Probe(path, now); got != tc.want || contents(t, path) != tc.left {
				t.Errorf("probe() = %d and leaves %q, want %d and %q", got, contents(t, path), tc.want, tc.left)
			}
		})
	}
	if got := Probe(filepath.Join(t.TempDir(), "absent"), time.Now()); got != 0 {
		t.Errorf("without a termination message probe() = %d", got)
	}
}

// A heartbeat makes an old message young, and takes back what a probe wrote.
func TestAHeartbeatSatisfiesTheProbe(t *testing.T) {
	path := terminationFile(t)
	now := time.Now()
	if err := os.Chtimes(path, now, now.Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	h := heartbeat{path: path}
	for _, want := range []int{1, 0} {
		if got := Probe(path, now); got != want {
			t.Errorf("probe() = %d, want %d", got, want)
		}
		h.beat()
	}
}

// The heart beats while the work responds, and not while it does not.
func TestHeartbeatsStopWhenTheWorkDoesNotRespond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := terminationFile(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		h := heartbeat{path: path}
		var hangs atomic.Bool
		over := make(chan struct{})
		h.watch(func() {
			if hangs.Load() {
				<-over
			}
		})
		go h.run(ctx)
		beats := func() bool {
			if err := os.WriteFile(path, hungTermination, 0o600); err != nil {
				t.Fatal(err)
			}
			time.Sleep(2 * heartbeatEvery)
			return contents(t, path) == ""
		}
		synctest.Wait()
		if !beats() {
			t.Error("there is no heartbeat while the work responds")
		}
		hangs.Store(true)
		time.Sleep(heartbeatEvery) // the one under way
		if beats() {
			t.Error("there is a heartbeat while the work hangs")
		}
		hangs.Store(false)
		close(over)
		if !beats() {
			t.Error("there is no heartbeat once the work responds again")
		}
	})
}

// The last word of a runner stays.
func TestNoHeartbeatBehindTheLastWord(t *testing.T) {
	path := terminationFile(t)
	h := heartbeat{path: path}
	h.end()
	if err := report.Terminate(path, task.Termination{Version: task.Version, Attempt: 1}); err != nil {
		t.Fatal(err)
	}
	h.beat()
	if contents(t, path) == "" {
		t.Error("a heartbeat took the termination message away")
	}
}
