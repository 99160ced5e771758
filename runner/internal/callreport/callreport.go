// Package callreport collects what the runner's own parts report about a call in addition to its result. A Report is in
// the context of the call: layers and tools of other modules can neither forge its entries nor lose them by replacing
// the result.
package callreport

import (
	"context"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Report is about one tool call, one answer of a model or the start of one session. A nil Report is empty. It is safe
// for concurrent use, because a tool may return after its timeout.
type Report struct {
	mu          sync.Mutex
	hooks       []step.Hook
	unreachable string
}

type key struct{}

// New returns a context with an empty Report. A call within a call has its own.
func New(ctx context.Context) (context.Context, *Report) {
	r := &Report{}
	return context.WithValue(ctx, key{}, r), r
}

// AddHook reports what a hook did.
func AddHook(ctx context.Context, h step.Hook) {
	if r, ok := ctx.Value(key{}).(*Report); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.hooks = append(r.hooks, h)
	}
}

// SetUnreachable reports, for the owner of the tool, why the endpoint of the call could not be
// reached: "lookup weather.example: no such host".
func SetUnreachable(ctx context.Context, why string) {
	if r, ok := ctx.Value(key{}).(*Report); ok {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.unreachable = why
	}
}

// Hooks returns what hooks did, in the order in which they answered.
func (r *Report) Hooks() []step.Hook {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.hooks)
}

// Unreachable returns why the endpoint could not be reached. Empty: it was reached, or the call
// failed for another reason.
func (r *Report) Unreachable() string {
	if r == nil {
		return ""
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unreachable
}
