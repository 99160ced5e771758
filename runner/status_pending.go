package runner

import (
	"context"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A keeper is a reporter that keeps what people are asked in the status when the
// pod goes: where the journal outlives it, the next attempt asks the same, and
// whoever reads the status meanwhile shall find it.
type keeper struct {
	reporter
	leaving func() bool

	mu    sync.Mutex
	state string
	asked []task.Pending
}

// Report implements [engine.Reporter].
func (k *keeper) Report(now func() task.Progress) { k.reporter.Report(k.keeping(now)) }

// Commit implements [engine.Reporter].
func (k *keeper) Commit(ctx context.Context, now func() task.Progress) error {
	return k.reporter.Commit(ctx, k.keeping(now))
}

func (k *keeper) keeping(now func() task.Progress) func() task.Progress {
	return func() task.Progress {
		p := now()
		k.mu.Lock()
		defer k.mu.Unlock()
		if !k.leaving() {
			k.state, k.asked = p.State, p.Pending
			return p
		}
		if p.Result == nil && len(p.Pending) == 0 && len(k.asked) > 0 {
			p.State, p.Pending = k.state, k.asked
		}
		return p
	}
}
