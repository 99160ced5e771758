package router

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
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
	// failure is the error of the last target; outage that of the last target which is
	// unavailable and whose provider named no time.
	failure, outage *source.Error
	// fault is the first error of a target that is not away, behind one that is.
	fault *source.Error
}

// run calls each target at most once.
func (a *call) run(ctx context.Context) error {
	order := a.orderThatFits()
	for i, at := range order {
		t := &a.targets[at]
		err := a.try(ctx, t)
		if a.stopped {
			return nil
		}
		a.setPromise(at, err)
		switch {
		case err == nil:
			return nil
		case !model.Transient(err) && !a.canWaitDespite(err):
			return t.sourceError(err)
		}
		a.keep(t.sourceError(err))
		if i == len(order)-1 {
			break
		}
		if err := a.switchTo(order[i+1], a.failure); err != nil || a.stopped {
			return err
		}
	}
	a.prefer(0) // all failed: the next call begins with the first target
	return a.end()
}

// orderThatFits returns the targets in the order in which they are asked. A fallback that was
// preferred, but for which the session could not be shortened, is not the first of them.
func (a *call) orderThatFits() []int {
	order := a.order()
	if first := order[0]; first != 0 && a.targets[first].checkSize(a.req) != nil {
		a.prefer(0)
		return a.order()
	}
	return order
}

// canWaitDespite reports whether an earlier target is only away, so that the Run can wait for
// it whatever is wrong with this one. A session that is too long for this one is compacted.
func (a *call) canWaitDespite(err error) bool {
	_, tooLong := errors.AsType[*model.ContextTooLongError](err)
	return !tooLong && a.failure != nil && isAway(a.failure)
}

// isAway reports whether a Model is away. If only its credential is, what is wrong with another Model
// says more.
func isAway(err error) bool {
	_, unreadable := errors.AsType[*model.NoCredentialError](err)
	return model.Outage(err) && !unreadable
}

// keep keeps the error of a target.
func (a *call) keep(err *source.Error) {
	if !isAway(err) && a.failure != nil && isAway(a.failure) {
		a.fault = cmp.Or(a.fault, err)
		return
	}
	a.failure = err
	if isAway(err) && model.RetryAfter(err) == 0 {
		a.outage = err
	}
}

// end returns the error of a call whose targets all failed: of one that may answer at any
// time, else of the one that promised to answer first, else of the last. With fallbacks that
// have other faults, the Run can wait all the same.
func (a *call) end() error {
	t, p := a.earliest()
	err := a.failure
	switch {
	case a.outage != nil:
		err = a.outage
	case t != nil:
		err = t.sourceError(p.err)
	}
	err.Until = p.until
	if a.fault != nil {
		err.Err = fmt.Errorf("%w (Model %s: %s)", err.Err, a.fault.Model, a.fault.Err.Error())
	}
	return err
}

// try yields what a target streams and returns its error.
func (a *call) try(ctx context.Context, t *Target) error {
	if a.stopped = !a.yield(model.Delta{Model: t.Name, Warning: t.fileWarning(a.req.Steps)}, nil); a.stopped {
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
		tooLong := next.sourceError(err)
		if isAway(because) {
			tooLong.Away = because
		}
		return tooLong
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
