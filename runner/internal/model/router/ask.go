package router

import (
	"context"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A call is one model call with the targets that it is sent to.
type call struct {
	*Router
	req     *model.Request
	yield   func(model.Delta, error) bool
	spent   step.Usage // by earlier targets
	used    step.Usage // by this target
	stopped bool       // the consumer has stopped
}

// run calls each target at most once, in a circle from the current one: if a
// fallback fails, the preferred target is tried before its cooldown ends.
func (a *call) run(ctx context.Context) error {
	first := a.first()
	for i := range a.targets {
		at := (first + i) % len(a.targets)
		t := &a.targets[at]
		err := a.try(ctx, t)
		switch {
		case err == nil || a.stopped:
			return nil
		case !model.Transient(err):
			return t.sourceError(err)
		case i == len(a.targets)-1:
			a.prefer(0) // all failed: the next call begins with the first target
			return t.sourceError(err)
		}
		if err := a.switchTo((at+1)%len(a.targets), t.sourceError(err)); err != nil || a.stopped {
			return err
		}
	}
	return nil
}

// try yields what a target streams and returns its error.
func (a *call) try(ctx context.Context, t *Target) error {
	if a.stopped = !a.yield(model.Delta{Model: t.Name}, nil); a.stopped {
		return nil
	}
	for d, err := range t.Model.Stream(ctx, t.request(a.req)) {
		if err != nil {
			return err
		}
		if d.Usage != nil {
			a.used = *d.Usage
		}
		if d.Usage != nil || d.Reset && a.spent != (step.Usage{}) {
			sum := a.spent.Plus(a.used)
			d.Usage = &sum
		}
		if a.stopped = !a.yield(d, nil); a.stopped {
			return nil
		}
	}
	return nil
}

// switchTo changes to another target if the request fits its context window. It
// yields a Delta that discards what was streamed, with the usage so far.
func (a *call) switchTo(at int, because error) error {
	a.prefer(at)
	next := &a.targets[at]
	if err := next.checkSize(a.req); err != nil {
		err.Message += fmt.Sprintf(" (asked because %v)", because)
		return next.sourceError(err)
	}
	a.spent = a.spent.Plus(a.used)
	a.used = step.Usage{}
	d := model.Delta{Reset: true, Because: fmt.Sprintf("%v; asking Model %s instead", because, next.Name)}
	if a.spent != (step.Usage{}) {
		spent := a.spent
		d.Usage = &spent
	}
	a.stopped = !a.yield(d, nil)
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
