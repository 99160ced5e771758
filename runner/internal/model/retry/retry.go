// Package retry asks a model again when trying again may help.
//
// It belongs outside of price, so that each try is priced by itself, and inside
// of whatever chooses another model.
package retry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// How often and how long, unless Options say otherwise.
const (
	DefaultRetries = 4
	DefaultBase    = 500 * time.Millisecond
	DefaultBusy    = 2 * time.Second
	DefaultMaxWait = time.Minute
)

// maxRetries bounds what Options may ask for.
const maxRetries = 100

// maxGarbled is how many tries may follow an answer that is none of a model. One
// may be a proxy's failure; more mean that the endpoint is wrong.
const maxGarbled = 2

// credentialWait is how long to wait for a credential that is not there. A kubelet
// takes up to a minute and a half to bring a Secret that changed.
const credentialWait = 25 * time.Second

// Options say how often and how long to wait. The zero value is the default.
type Options struct {
	// Retries is how many tries may follow the first, at most 100; negative: none.
	Retries int
	// Base bounds the wait before the first retry; the bound doubles with each.
	// The wait itself is drawn evenly from what the bound allows.
	Base time.Duration
	// Busy takes the place of Base where the provider is rate limiting or overloaded
	// and does not say for how long. Half of the bound is waited in any case.
	Busy time.Duration
	// MaxWait bounds every wait. A provider that asks for a longer one is not
	// waited for: its error is returned at once.
	MaxWait time.Duration
	// Sleep waits, or returns early with the error of the context.
	Sleep func(ctx context.Context, d time.Duration) error
	// Draw is a random wait below limit.
	Draw func(limit time.Duration) time.Duration
}

// New is m, asked again after what model.Transient calls transient, and after an
// answer that is none of a model.
//
// A Delta with Reset stands before each further try and voids what the one
// before it streamed, if anything. Usage never does: each Usage yielded is the sum of all tries so far, and
// one is yielded before the last error too.
func New(m model.Model, o Options) model.Model {
	o.Retries = min(max(cmp.Or(o.Retries, DefaultRetries), 0), maxRetries)
	o.Base = cmp.Or(o.Base, DefaultBase)
	o.Busy = cmp.Or(o.Busy, DefaultBusy)
	o.MaxWait = cmp.Or(o.MaxWait, DefaultMaxWait)
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	if o.Draw == nil {
		o.Draw = rand.N[time.Duration]
	}
	return &retrier{model: m, Options: o}
}

type retrier struct {
	Options
	model model.Model
}

// Stream asks until an answer is whole, trying again makes no sense, or the
// tries are used up.
func (r *retrier) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := call{retrier: r, yield: yield}
		if err := a.run(ctx, req); err != nil {
			yield(model.Delta{}, err)
		}
	}
}

// wait is how long to wait after the try numbered from 0, and whether there is
// another at all.
func (r *retrier) wait(err error, try int) (time.Duration, bool) {
	asked, final := retryAdvice(err)
	again := model.Transient(err) || isGarbled(err) && try < maxGarbled
	switch {
	case final || try == r.Retries || asked > r.MaxWait || !again:
		return 0, false
	case asked > 0:
		return asked, true
	case isBusy(err):
		half := bound(r.Busy, r.MaxWait, try) / 2
		return half + r.Draw(half), true
	}
	return r.Draw(bound(r.Base, r.MaxWait, try)), true
}

// bound is the base, doubled with each try, up to a bound.
func bound(base, most time.Duration, try int) time.Duration {
	for range try {
		base = min(2*base, most)
	}
	return base
}

// isBusy reports whether a provider that works has too much to do.
func isBusy(err error) bool {
	if _, limited := errors.AsType[*model.RateLimitedError](err); limited {
		return true
	}
	unavailable, ok := errors.AsType[*model.UnavailableError](err)
	return ok && (unavailable.Status == http.StatusServiceUnavailable || unavailable.Status == model.StatusOverloaded)
}

// isGarbled reports whether what came was no model's answer.
func isGarbled(err error) bool {
	garbled, ok := errors.AsType[*model.NotAModelError](err)
	return ok && !garbled.Final
}

// retryAdvice is what the provider said about trying again.
func retryAdvice(err error) (after time.Duration, final bool) {
	var limited *model.RateLimitedError
	var unavailable *model.UnavailableError
	var unreadable *model.NoCredentialError
	switch {
	case errors.As(err, &limited):
		return limited.RetryAfter, limited.Final
	case errors.As(err, &unavailable):
		return unavailable.RetryAfter, unavailable.Final
	case errors.As(err, &unreadable):
		return credentialWait, false
	}
	return 0, false
}

// An asking is one answer, in as many tries as it takes.
type call struct {
	*retrier
	yield   func(model.Delta, error) bool
	spent   step.Usage // by the tries before
	used    step.Usage // by this one
	stopped bool       // nobody listens any more
}

// run makes the tries and returns the error of the last.
func (a *call) run(ctx context.Context, req *model.Request) error {
	for try := 0; ; try++ {
		err := a.try(a.model.Stream(ctx, req))
		wait, again := a.wait(err, try)
		if !again {
			return err
		}
		if a.reset(err, wait); a.stopped {
			return nil
		}
		if err := a.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("waiting to ask the model again: %w", err)
		}
	}
}

// try passes on what one try streams and returns the error that ended it; none
// if nobody listens any more.
func (a *call) try(stream iter.Seq2[model.Delta, error]) error {
	for d, err := range stream {
		if err != nil {
			return err
		}
		if d.Usage != nil {
			a.used = *d.Usage
			sum := a.spent.Plus(a.used)
			d.Usage = &sum
		}
		if !a.yield(d, nil) {
			return nil
		}
	}
	return nil
}

// reset makes what this try streamed count for nothing, but for its cost, and tells
// why the model is asked again and when.
func (a *call) reset(because error, wait time.Duration) {
	a.spent = a.spent.Plus(a.used)
	a.used = step.Usage{}
	again := model.Delta{Reset: true, Because: because.Error()}
	if wait >= time.Second {
		again.Because += fmt.Sprintf(" (after a wait of %s)", wait.Round(time.Second))
	}
	if a.spent != (step.Usage{}) {
		spent := a.spent
		again.Usage = &spent
	}
	a.stopped = !a.yield(again, nil)
}

// sleep waits for real.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
