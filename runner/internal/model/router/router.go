// Package router calls several Models in order until one answers.
//
// It changes to the next Model only after an error that is [model.Transient], when
// the retries of the Model are used up. Other errors would be the same with another
// Model and are returned: a wrong request or key, a refusal, a session that is too
// long. After a change the router keeps the Model for a cooldown, so that a session
// does not alternate between prompt caches, and then tries the first again.
//
//	Request ─▶ target 1 ── transient ──▶ Reset ─▶ fits target 2? ─▶ target 2 ─▶ …
//	              │                                   │
//	              ▼                                   ▼
//	          answer, or a source.Error     ContextTooLong with the window of
//	                                        target 2, which is asked next time
//
// A request to a Model does not contain reasoning of another Model or content that
// only another provider can read. Packages retry and price decorate each target.
package router

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Cooldown is how long a fallback is used before the first target is tried again.
const Cooldown = 5 * time.Minute

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
	// Takes reports whether the Model accepts images or documents; nil: it accepts both. A line of text replaces files
	// that it does not accept.
	Takes func(step.PartKind) bool
	// Credential describes the source of the key, for messages.
	Credential string
}

// A Router is a Model that calls one of several. Sessions may share one, so that a
// fallback that one needs is used by all.
type Router struct {
	targets []Target
	now     func() time.Time

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

// New returns a Router over targets in order of preference; now nil: the time of the machine.
func New(targets []Target, now func() time.Time) *Router {
	return &Router{targets: targets, now: clock.Or(now), promises: make([]promise, len(targets))}
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

// order returns the indices of the targets to call, in rotation from the current one: if a fallback fails, the
// preferred target is tried before its cooldown ends. Targets whose provider named a later time are left out, unless
// all did.
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

// earliest returns the target whose provider named the earliest future time, with that promise; nil: none did.
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
	r.at, r.until = at, r.now().Add(Cooldown)
}

// sourceError wraps an error of the target.
func (t *Target) sourceError(err error) *source.Error {
	return &source.Error{Model: t.Name, Credential: t.Credential, Err: err}
}

// A call is one model call with the targets that it is sent to.
type call struct {
	*Router
	req     *model.Request
	yield   func(model.Delta, error) bool
	spent   step.Usage // by earlier targets
	used    step.Usage // by this target
	stopped bool       // the consumer has stopped
	// failure is the error of the last target. outage is the error of the last unavailable target whose provider named
	// no time.
	failure, outage *source.Error
	// fault is the first error of an available target that was called after an unavailable one.
	fault *source.Error
}

// run calls each target at most once.
func (c *call) run(ctx context.Context) error {
	order := c.orderThatFits()
	for i, at := range order {
		t := &c.targets[at]
		err := c.try(ctx, t)
		if c.stopped {
			return nil
		}
		c.setPromise(at, err)
		switch {
		case err == nil:
			return nil
		case !model.Transient(err) && !c.canWaitDespite(err):
			return t.sourceError(err)
		}
		c.keep(t.sourceError(err))
		if i == len(order)-1 {
			break
		}
		if err := c.switchTo(order[i+1], c.failure); err != nil || c.stopped {
			return err
		}
	}
	c.prefer(0) // all failed: the next call begins with the first target
	return c.end()
}

// orderThatFits returns the targets in the order in which they are called. If a fallback was preferred, and the session
// could not be shortened for it, it is not the first.
func (c *call) orderThatFits() []int {
	order := c.order()
	if first := order[0]; first != 0 && c.targets[first].checkSize(c.req) != nil {
		c.prefer(0)
		return c.order()
	}
	return order
}

// canWaitDespite reports whether an earlier target is unavailable, so that the Run can wait for it despite the error of
// this one. If the session is too long for this target, it is compacted instead.
func (c *call) canWaitDespite(err error) bool {
	_, tooLong := errors.AsType[*model.ContextTooLongError](err)
	return !tooLong && c.failure != nil && isAway(c.failure)
}

// isAway reports whether a Model is unavailable. If only its credential is missing, the error of another Model is more
// useful, so that does not count.
func isAway(err error) bool {
	_, unreadable := errors.AsType[*model.NoCredentialError](err)
	return model.Outage(err) && !unreadable
}

// keep keeps the error of a target.
func (c *call) keep(err *source.Error) {
	if !isAway(err) && c.failure != nil && isAway(c.failure) {
		c.fault = cmp.Or(c.fault, err)
		return
	}
	c.failure = err
	if isAway(err) && model.RetryAfter(err) == 0 {
		c.outage = err
	}
}

// end returns the error of a call whose targets all failed. A target that may answer at any time is preferred, then the
// target that promised the earliest time, then the last. If fallbacks have other faults, the Run can still wait.
func (c *call) end() error {
	t, p := c.earliest()
	err := c.failure
	switch {
	case c.outage != nil:
		err = c.outage
	case t != nil:
		err = t.sourceError(p.err)
	}
	err.Until = p.until
	if c.fault != nil {
		err.Err = fmt.Errorf("%w (Model %s: %s)", err.Err, c.fault.Model, c.fault.Err.Error())
	}
	return err
}

// try yields the stream of a target and returns its error.
func (c *call) try(ctx context.Context, t *Target) error {
	if c.stopped = !c.yield(model.Delta{Model: t.Name, Warning: t.fileWarning(c.req.Steps)}, nil); c.stopped {
		return nil
	}
	for d, err := range t.Model.Stream(ctx, t.request(c.req)) {
		if err != nil {
			return err
		}
		if d.Usage != nil {
			c.used = *d.Usage
		}
		if d.Usage != nil || d.Reset && c.spent != (step.Usage{}) {
			sum := c.spent.Plus(c.used)
			d.Usage = &sum
		}
		if c.stopped = !c.yield(d, nil); c.stopped {
			return nil
		}
	}
	return nil
}

// switchTo changes to another target if the request fits its context window. It
// yields a Delta that discards what was streamed, with the usage so far.
func (c *call) switchTo(at int, because error) error {
	c.prefer(at)
	next := &c.targets[at]
	if err := next.checkSize(c.req); err != nil {
		err.Message += fmt.Sprintf(" (asked because %v)", because)
		tooLong := next.sourceError(err)
		if isAway(because) {
			tooLong.Away = because
		}
		return tooLong
	}
	c.spent = c.spent.Plus(c.used)
	c.used = step.Usage{}
	d := model.Delta{Reset: true, Because: fmt.Sprintf("%v; asking Model %s instead", because, next.Name)}
	if c.spent != (step.Usage{}) {
		spent := c.spent
		d.Usage = &spent
	}
	c.stopped = !c.yield(d, nil)
	return nil
}

// checkSize returns an error if a request does not fit the context window. The size
// is an estimate, because no call to this Model has counted its tokens.
func (t *Target) checkSize(req *model.Request) *model.ContextTooLongError {
	if t.Window <= 0 {
		return nil
	}
	room := t.Window - t.MaxOutput
	if room <= 0 {
		room = t.Window
	}
	size := model.EstimateInput(t.request(req))
	if size <= room {
		return nil
	}
	return &model.ContextTooLongError{Window: t.Window, Message: fmt.Sprintf(
		"it is about %d tokens, and a window of %d leaves %d for it", size, t.Window, room)}
}

// request returns the request for a target: the steps that it can read, with its
// parameters as defaults. It does not change req.
func (t *Target) request(req *model.Request) *model.Request {
	own := *req
	own.Params = mergeParams(req.Params, t.Params)
	own.Steps = t.withoutFiles(t.readable(req.Steps))
	return &own
}

// readable returns the steps that the Model of the target can read: the same slice if no other Model answered.
func (t *Target) readable(steps []step.Step) []step.Step {
	isForeign := func(s step.Step) bool { return s.Model != "" && s.Model != t.Name }
	first := slices.IndexFunc(steps, isForeign)
	if first < 0 {
		return steps
	}
	own := slices.Clone(steps)
	for i := first; i < len(own); i++ {
		own[i] = own[i].ForModel(t.Name)
	}
	return own
}

// withoutFiles returns the steps with a line of text instead of each file that the Model does not accept: the same
// slice if there is none.
func (t *Target) withoutFiles(steps []step.Step) []step.Step {
	if t.Takes == nil || !slices.ContainsFunc(steps, step.Step.HasFiles) {
		return steps
	}
	own := slices.Clone(steps)
	for i := range own {
		own[i] = own[i].WithoutFiles(func(p step.Part) string {
			if t.Takes(p.Kind) {
				return ""
			}
			return fmt.Sprintf("this model does not take %ss", p.Kind)
		})
	}
	return own
}

// fileWarning counts the files in the prompt or a message of a user that the Model does not accept; empty: none.
func (t *Target) fileWarning(steps []step.Step) string {
	shown, left := 0, 0
	for i, s := range t.withoutFiles(steps) {
		if s.Role == step.RoleUser {
			shown, left = shown+steps[i].Files(), left+steps[i].Files()-s.Files()
		}
	}
	if left == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d files that a user shows are not sent, and the agent reads a line for each: Model %s does not take them. Use another Model", left, shown, t.Name)
}

// mergeParams returns parameters p with under as defaults.
func mergeParams(p, under model.Params) model.Params {
	p.MaxOutputTokens = cmp.Or(p.MaxOutputTokens, under.MaxOutputTokens)
	p.Temperature = cmp.Or(p.Temperature, under.Temperature)
	p.TopP = cmp.Or(p.TopP, under.TopP)
	p.Reasoning = cmp.Or(p.Reasoning, under.Reasoning)
	p.Extra = mergeJSON(p.Extra, under.Extra)
	return p
}

// mergeJSON merges two JSON objects recursively; top overrides under. A null is kept,
// because it removes a field of the request. If one is not an object it returns
// top, which the adapter refuses.
func mergeJSON(top, under json.RawMessage) json.RawMessage {
	switch {
	case len(top) == 0:
		return under
	case len(under) == 0:
		return top
	}
	var a, b map[string]json.RawMessage
	if json.Unmarshal(top, &a) != nil || json.Unmarshal(under, &b) != nil || a == nil || b == nil {
		return top
	}
	for key, value := range a {
		b[key] = mergeJSON(value, b[key])
	}
	merged, err := json.Marshal(b)
	if err != nil {
		return top
	}
	return merged
}
