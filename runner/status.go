package runner

import (
	"context"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A statusReporter completes what the engine reports. Where the journal outlives the
// pod, what people are asked stays in the status when the pod goes: the next attempt
// asks the same, and users can decide meanwhile.
type statusReporter struct {
	to reporter
	// leaving says that the pod goes; nil: the journal goes with it.
	leaving func() bool
	// refusals are what commands were refused; nil: there is no sandbox.
	refusals *refusals

	mu          sync.Mutex
	confinement *task.Confinement // nil: not known yet, or there is no sandbox
	state       string
	asked       []task.Pending
}

// Begin implements [engine.Reporter].
func (r *statusReporter) Begin(ctx context.Context, now func() task.Progress) error {
	return r.to.Begin(ctx, r.complete(now))
}

// Accepted implements [engine.Reporter].
func (r *statusReporter) Accepted() bool { return r.to.Accepted() }

// Report implements [engine.Reporter].
func (r *statusReporter) Report(now func() task.Progress) { r.to.Report(r.complete(now)) }

// Commit implements [engine.Reporter].
func (r *statusReporter) Commit(ctx context.Context, now func() task.Progress) error {
	return r.to.Commit(ctx, r.complete(now))
}

func (r *statusReporter) Close() { r.to.Close() }

// showConfinement has every report say how commands are confined.
func (r *statusReporter) showConfinement(c *task.Confinement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.confinement = c
}

func (r *statusReporter) complete(now func() task.Progress) func() task.Progress {
	return func() task.Progress {
		p := now()
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.confinement != nil {
			p.Confinement = r.confinement
		}
		if r.refusals != nil {
			p.Refused = r.refusals.report()
		}
		switch {
		case r.leaving == nil:
		case !r.leaving():
			r.state, r.asked = p.State, p.Pending
		case p.Result == nil && len(p.Pending) == 0 && len(r.asked) > 0:
			p.State, p.Pending = r.state, r.asked
		}
		return printableProgress(p)
	}
}
