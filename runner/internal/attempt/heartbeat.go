package attempt

import (
	"bytes"
	"context"
	"io"
	"os"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// heartbeatEvery is how often a runner shows that it responds.
	heartbeatEvery = 5 * time.Second
	// heartbeatMaxAge is the age of the last heartbeat from which on the liveness
	// probe fails.
	heartbeatMaxAge = 30 * time.Second
)

// A heartbeat shows the liveness probe that the runner responds. It truncates the termination message, which is empty
// until the runner ends: its modification time is the time of the last heartbeat, and the next heartbeat removes the
// message of a failed probe. The kubelet creates that file for every container, on no volume of the Run, so that a
// volume that does not respond stops no heartbeat.
type heartbeat struct {
	path string // empty: there is no probe

	mu     sync.Mutex
	checks []func()
	ended  bool
}

// watch makes each heartbeat wait until check returns.
func (h *heartbeat) watch(check func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.checks = append(h.checks, check)
}

// run beats until the context ends.
func (h *heartbeat) run(ctx context.Context) {
	if h.path == "" {
		return
	}
	tick := time.NewTicker(heartbeatEvery)
	defer tick.Stop()
	for {
		h.beat()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (h *heartbeat) beat() {
	h.mu.Lock()
	checks := h.checks
	h.mu.Unlock()
	for _, check := range checks {
		check()
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return
	}
	if f, err := os.OpenFile(h.path, os.O_WRONLY|os.O_TRUNC, 0); err == nil {
		_ = f.Close()
	}
}

// end ends the heartbeats: from now on the file is the termination message.
func (h *heartbeat) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
}

// hungTermination is the termination message of a runner that the kubelet ends. It has no usage and therefore no
// attempt, so that no meter is taken from it.
var hungTermination = task.Termination{Version: task.Version, Result: task.Result{
	Reason:  task.ReasonRunnerFailed,
	Message: "the runner did not respond for more than two minutes, and its liveness probe ended it",
}}.Encode()

// Probe executes the liveness probe: it returns 1 if the runner whose termination message is at path does not respond,
// and then writes the cause there, for the operator. If it cannot open the file, it returns 0, because the runner could
// not open it either.
func Probe(path string, now time.Time) int {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return 0
	}
	defer f.Close()
	said, err := io.ReadAll(io.LimitReader(f, task.MaxTermination))
	if err != nil {
		return 0
	}
	if len(said) > 0 {
		if bytes.Equal(said, hungTermination) {
			return 1 // no heartbeat since the last probe
		}
		return 0 // it is ending, and bounds that itself
	}
	if info, err := f.Stat(); err != nil || now.Sub(info.ModTime()) <= heartbeatMaxAge {
		return 0
	}
	_, _ = f.Write(hungTermination)
	return 1
}
