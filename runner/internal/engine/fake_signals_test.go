package engine

import (
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// fakeSignals are Signals that a test sets. What approvers decided, and how child
// Runs ended, outlives the runner; the rest is said to one runner.
type fakeSignals struct {
	mu     sync.Mutex
	latest *signals.Latest
}

func newSignals(said ...task.Decision) *fakeSignals {
	f := &fakeSignals{latest: &signals.Latest{}}
	f.update(func(s *signals.Signals) { s.Decisions = said })
	return f
}

func (f *fakeSignals) of() *signals.Latest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

func (f *fakeSignals) Current() (signals.Signals, <-chan struct{}) { return f.of().Current() }

func (f *fakeSignals) update(change func(*signals.Signals)) { f.of().Update(change) }

// restart has them said to another runner.
func (f *fakeSignals) restart() {
	now, _ := f.Current()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.latest = &signals.Latest{}
	f.latest.Update(func(s *signals.Signals) { s.Decisions, s.Children = now.Decisions, now.Children })
}

func (f *fakeSignals) say(d task.Decision) {
	f.update(func(s *signals.Signals) { s.Decisions = append(slices.Clip(s.Decisions), d) })
}

func (f *fakeSignals) pause(on bool) { f.update(func(s *signals.Signals) { s.Paused = on }) }

func (f *fakeSignals) stop() { f.update(func(s *signals.Signals) { s.Stopped = true }) }

// withSignals has a testRun hear what is said.
func (tr *testRun) withSignals(f *fakeSignals) {
	f.restart()
	tr.signals, tr.Signals = f, f
}

// withApprovers has approvers decide on a testRun.
func (tr *testRun) withApprovers(f *fakeSignals) {
	tr.withSignals(f)
	tr.CanAsk = true
}

// withOperator has an operator create child Runs.
func (tr *testRun) withOperator(n *fakeOperator) {
	tr.withSignals(n.fakeSignals)
	tr.CanStartRuns = true
}

// sigterm says that the pod is shut down.
func (tr *testRun) sigterm() {
	tr.signals.update(func(s *signals.Signals) { s.Interrupted = true })
}
