package router

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/clock"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// DefaultCooldown is how long a router stays with a fallback.
const DefaultCooldown = 5 * time.Minute

// A Target is one Model that may answer.
type Target struct {
	// Name is the Model's name, under which steps record its answers.
	Name string
	// Model asks it, and tries again by itself.
	Model model.Model
	// Params are the Model's own; those of a Request go over them, field by field.
	Params model.Params
	// Window and MaxOutput bound a request and its answer, in tokens; a window of
	// 0 is not known, and nothing is measured against it.
	Window, MaxOutput int64
	// Credential says where the key comes from, for people.
	Credential string
}

// Options are for tests and for the impatient; the zero value is the default.
type Options struct {
	// Now replaces the clock.
	Now func() time.Time
	// Cooldown is how long to stay with a fallback before the first is tried again.
	Cooldown time.Duration
}

// A Router is a Model that is several. Sessions may share one: what one of them
// finds out about a Model spares the others.
type Router struct {
	targets  []Target
	now      func() time.Time
	cooldown time.Duration

	mu    sync.Mutex
	at    int       // the target that is asked first
	until time.Time // when it is the first one again
}

// New is a Router over targets, the preferred first.
func New(targets []Target, o Options) *Router {
	o.Now = clock.Or(o.Now)
	return &Router{targets: targets, now: o.Now, cooldown: cmp.Or(o.Cooldown, DefaultCooldown)}
}

// Next is the Model that the next request goes to, its window and the most that
// it writes, in tokens.
func (r *Router) Next() (name string, window, maxOutput int64) {
	if len(r.targets) == 0 {
		return "", 0, 0
	}
	t := r.targets[r.first()]
	return t.Name, t.Window, t.MaxOutput
}

// Stream asks the targets in order until one answers. The first Delta of each
// says who speaks; before another is asked comes a Reset. Each Usage is the sum
// of all targets so far. Every error is a *model.SourceError.
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

// first is the target that is asked first now.
func (r *Router) first() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.at != 0 && !r.now().Before(r.until) {
		r.at = 0
	}
	return r.at
}

// prefer makes a target the first to be asked for a while.
func (r *Router) prefer(at int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.at, r.until = at, r.now().Add(r.cooldown)
}

// sourceError is an error of the target.
func (t *Target) sourceError(err error) error {
	return &model.SourceError{Model: t.Name, Credential: t.Credential, Err: err}
}
