// Package retry retries model calls that failed with a transient error.
//
// It decorates package price, so that each attempt is priced, and is decorated by
// package router, which changes to another Model after the retries.
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

// Defaults of Options.
const (
	DefaultRetries = 4
	DefaultBase    = 500 * time.Millisecond
	DefaultBusy    = 2 * time.Second
	DefaultMaxWait = time.Minute
)

// maxRetries bounds Options.Retries.
const maxRetries = 100

// maxGarbled bounds the retries after an answer that is not from a model. One such answer may be an error of a proxy;
// more mean that the endpoint is wrong.
const maxGarbled = 2

// maxTimeouts bounds the retries after a timeout. The endpoint starts each request from the beginning, so it is likely
// to reach the same limit again.
const maxTimeouts = 1

// Options configure retries. Zero values are the defaults.
type Options struct {
	// Retries bounds the retries, at most 100; negative: none.
	Retries int
	// Base bounds the wait before the first retry. The bound doubles with each retry,
	// and the wait is random below it.
	Base time.Duration
	// Busy replaces Base if the provider limits the rate or is overloaded and sends no
	// Retry-After. The wait is at least half of the bound.
	Busy time.Duration
	// MaxWait bounds every wait. If the provider requires a longer one, its error is
	// returned at once.
	MaxWait time.Duration
	// Sleep waits, or returns the error of the context. For tests.
	Sleep func(ctx context.Context, d time.Duration) error
	// Draw returns a random duration below limit. For tests.
	Draw func(limit time.Duration) time.Duration
}

// New returns a Model that retries m after errors that are model.Transient, and
// after an answer that is not from a model. An answer whose finish reason does not say that
// it is whole is requested once more. The next such answer counts, and carries the reason.
//
// A Delta with Reset precedes each retry and discards what was streamed before. Each
// Usage is the sum of all attempts so far. The Usage of the last attempt is yielded
// before its error.
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

// Stream implements [model.Model].
func (r *retrier) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := call{retrier: r, yield: yield}
		if err := a.run(ctx, req); err != nil {
			yield(model.Delta{}, err)
		}
	}
}

// wait returns how long to wait after an attempt, numbered from 0, and whether to
// retry.
func (r *retrier) wait(err error, try int) (time.Duration, bool) {
	asked, final := retryAdvice(err)
	_, unclear := errors.AsType[*unclearError](err)
	again := model.Transient(err) || unclear || isGarbled(err) && try < maxGarbled
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

// bound returns base, doubled with each attempt, and at most most.
func bound(base, most time.Duration, try int) time.Duration {
	for range try {
		base = min(2*base, most)
	}
	return base
}

// isBusy reports whether a provider limits the rate or is overloaded.
func isBusy(err error) bool {
	if _, limited := errors.AsType[*model.RateLimitedError](err); limited {
		return true
	}
	unavailable, ok := errors.AsType[*model.UnavailableError](err)
	return ok && (unavailable.Status == http.StatusServiceUnavailable || unavailable.Status == model.StatusOverloaded)
}

// isGarbled reports whether an answer was not from a model.
func isGarbled(err error) bool {
	garbled, ok := errors.AsType[*model.NotAModelError](err)
	return ok && !garbled.Final
}

// retryAdvice returns the Retry-After of an error, and whether the error is final.
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
		return 0, true // the kubelet takes up to 90 s to update a mounted Secret: the session waits, and shows it
	}
	return 0, false
}

// An unclearError discards an answer whose finish reason does not show that it is complete.
type unclearError struct{ reason string }

func (e *unclearError) Error() string {
	return fmt.Sprintf("the finish reason %q does not say that the answer is whole", e.reason)
}

// A call is one model call with its attempts.
type call struct {
	*retrier
	yield   func(model.Delta, error) bool
	spent   step.Usage // by earlier attempts
	used    step.Usage // by this attempt
	unclear bool       // an answer with an unclear finish reason counts
	stopped bool       // the consumer has stopped

	timeouts int // how many attempts ended by one
}

// run makes the attempts and returns the error of the last.
func (c *call) run(ctx context.Context, req *model.Request) error {
	for try := 0; ; try++ {
		c.unclear = c.unclear || try == c.Retries
		err := c.try(c.model.Stream(ctx, req))
		if _, timeout := errors.AsType[*model.TimeoutError](err); timeout {
			c.timeouts++
		}
		wait, again := c.wait(err, try)
		if !again || c.timeouts > maxTimeouts {
			return err
		}
		if c.reset(err, wait); c.stopped {
			return nil
		}
		if err := c.Sleep(ctx, wait); err != nil {
			return fmt.Errorf("waiting to ask the model again: %w", err)
		}
	}
}

// try yields the stream of one attempt and returns its error, or nil if the consumer has stopped.
func (c *call) try(stream iter.Seq2[model.Delta, error]) error {
	for d, err := range stream {
		if err != nil {
			return err
		}
		if d.Usage != nil {
			c.used = *d.Usage
			sum := c.spent.Plus(c.used)
			d.Usage = &sum
		}
		if d.UnclearReason != "" && !c.unclear {
			c.unclear = true
			return &unclearError{d.UnclearReason}
		}
		if !c.yield(d, nil) {
			return nil
		}
	}
	return nil
}

// reset yields a Delta that discards the stream of this attempt, with the cause of the retry and the usage so far.
func (c *call) reset(because error, wait time.Duration) {
	c.spent = c.spent.Plus(c.used)
	c.used = step.Usage{}
	again := model.Delta{Reset: true, Because: because.Error()}
	if wait >= time.Second {
		again.Because += fmt.Sprintf(" (after a wait of %s)", wait.Round(time.Second))
	}
	if c.spent != (step.Usage{}) {
		spent := c.spent
		again.Usage = &spent
	}
	c.stopped = !c.yield(again, nil)
}

// sleep is the default of Options.Sleep.
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
