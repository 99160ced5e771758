package router

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// DefaultCooldown is the default of Options.Cooldown.
const DefaultCooldown = 5 * time.Minute

// A Target is one Model that may answer.
type Target struct {
	// Name is the name of the Model, which steps record.
	Name string
	// Model calls it, with retries.
	Model model.Model
	// Params are the defaults for the parameters of a request.
	Params model.Params
	// Window is the context window and MaxOutput the largest answer, in tokens. If
	// Window is 0 the size of requests is not checked.
	Window, MaxOutput int64
	// Takes reports whether the Model takes images or documents; nil: it takes both. It is sent a line in
	// place of what it does not take.
	Takes func(step.PartKind) bool
	// Credential describes the source of the key, for messages.
	Credential string
}

// Options configure a Router. Zero values are the defaults.
type Options struct {
	// Now returns the time.
	Now func() time.Time
	// Cooldown is how long a fallback is used before the first target is tried again.
	Cooldown time.Duration
}

// A Router is a Model that calls one of several. Sessions may share one, so that a
// fallback that one needs is used by all.
type Router struct {
	targets  []Target
	now      func() time.Time
	cooldown time.Duration

	mu    sync.Mutex
	at    int       // the target that is called first
	until time.Time // when the first target is tried again
	// promises are the times that the providers of the targets named last.
	promises []promise
}

// A promise is a time before which a provider does not want to be asked again.
type promise struct {
	until time.Time
	err   error // that named the time
}

// New returns a Router over targets in order of preference.
func New(targets []Target, o Options) *Router {
	o.Now = clock.Or(o.Now)
	return &Router{targets: targets, now: o.Now, cooldown: cmp.Or(o.Cooldown, DefaultCooldown), promises: make([]promise, len(targets))}
}

// Next returns the Model of the next call, its context window and its largest
// answer, in tokens.
func (r *Router) Next() (name string, window, maxOutput int64) {
	if len(r.targets) == 0 {
		return "", 0, 0
	}
	t := r.targets[r.order()[0]]
	return t.Name, t.Window, t.MaxOutput
}

// Stream calls the targets in order until one answers. The first Delta of each
// target names it, and a Reset precedes a change of the target. Each Usage is the sum
// of all targets so far. Every error is a *source.Error.
func (r *Router) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		if len(r.targets) == 0 {
			yield(model.Delta{}, errors.New("there is no Model to ask"))
			return
		}
		a := call{Router: r, req: req, yield: yield}
		if err := a.run(ctx); err != nil {
			yield(model.Delta{}, err)
		}
	}
}

// order returns the indices of the targets to call, in a circle from the current one: if a
// fallback fails, the preferred target is tried before its cooldown ends. Targets whose
// provider named a later time are left out, unless all did.
func (r *Router) order() []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at != 0 && !r.now().Before(r.until) {
		r.at = 0
	}
	var all, ready []int
	for i := range r.targets {
		at := (r.at + i) % len(r.targets)
		all = append(all, at)
		if !r.promises[at].until.After(r.now()) {
			ready = append(ready, at)
		}
	}
	if len(ready) == 0 {
		return all
	}
	return ready
}

// setPromise keeps the time that the provider of a target named in an error; nil: the
// target answered.
func (r *Router) setPromise(at int, err error) {
	p := promise{}
	if after := model.RetryAfter(err); after > 0 {
		p = promise{until: r.now().Add(after), err: err}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.promises[at] = p
}

// earliest returns the target whose provider named the earliest time that is yet to come,
// with that promise; nil: none did.
func (r *Router) earliest() (*Target, promise) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var first *Target
	var earliest promise
	for i, p := range r.promises {
		if p.until.After(r.now()) && (first == nil || p.until.Before(earliest.until)) {
			first, earliest = &r.targets[i], p
		}
	}
	return first, earliest
}

// prefer makes a target the first to be called during the cooldown.
func (r *Router) prefer(at int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.until = at, r.now().Add(r.cooldown)
}

// sourceError wraps an error of the target.
func (t *Target) sourceError(err error) *source.Error {
	return &source.Error{Model: t.Name, Credential: t.Credential, Err: err}
}
