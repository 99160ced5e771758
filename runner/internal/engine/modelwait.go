package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// firstModelWait is the first wait for a model whose provider names no time. Each further wait is twice as long, up
	// to maxModelWait.
	firstModelWait = 30 * time.Second
	maxModelWait   = 5 * time.Minute
	// minKeyWait is the shortest bound of the wait for a missing key, whatever limits.modelOutage is: the kubelet takes up
	// to 90 s to update a mounted Secret.
	minKeyWait = 2 * time.Minute
	// maxBusyWaits is the number of waits for a busy provider if limits.modelOutage is 0s. Nothing else bounds them.
	maxBusyWaits = 5
	// maxBrokenOffWaits is the number of waits after answers that a provider broke off. Such a provider is available,
	// and each try costs tokens.
	maxBrokenOffWaits = 3
	// maxCause bounds the error of a model, in bytes, in a message that has further text.
	maxCause = 512
)

// A modelFailure is a failed model call after which the session may wait.
type modelFailure struct {
	before state.Outage // what failed before it
	since  time.Time    // when the first request of the call failed
	at     time.Time    // when the last one did
	until  time.Time    // the earliest time that a provider named; zero: none did
	// silent reports that a Model may be available again at any time, because its provider named no time.
	silent bool
	// busy reports that a provider limits the rate or is overloaded.
	busy bool
	// brokeOff reports that an available provider broke off its answer.
	brokeOff bool
	// unsent reports that no request was sent, for lack of a credential: a try costs nothing.
	unsent bool
	// check is what a user checks if the wait is in vain.
	check string
}

// modelWaitLimits bound a wait for a model.
type modelWaitLimits struct {
	outage  time.Duration // limits.modelOutage, without a time that a provider named
	promise time.Duration // limits.wait, until a time that a provider named
}

// outageOf returns how long a model may be unavailable after the failure f.
func (l modelWaitLimits) outageOf(f modelFailure) time.Duration {
	if f.unsent {
		return max(l.outage, minKeyWait)
	}
	return l.outage
}

// A modelTry is the time of the next try, or the reason why there is none.
type modelTry struct {
	at time.Time
	// until is the time that a provider named, before which the model is not asked; zero: none.
	until time.Time
	end   waitEnd
}

// waitEnd is why a model is not asked again.
type waitEnd int

const (
	waitGoesOn      waitEnd = iota
	waitNotAllowed          // limits.modelOutage is 0s, and no wait is left; or the provider breaks off each answer
	waitTooLong             // limits.modelOutage is reached
	waitPromiseLong         // the provider named a time beyond limits.wait
)

// next decides when the model is asked again.
func (f modelFailure) next(l modelWaitLimits) modelTry {
	wait := firstModelWait
	if !f.unsent {
		wait = min(wait<<min(f.before.Waits, maxBusyWaits), maxModelWait)
	}
	backoff := f.at.Add(wait)
	if !f.until.IsZero() {
		switch {
		case f.until.Sub(cmp.Or(f.before.PromisedSince, f.since)) <= l.promise:
			return f.promised(backoff)
		case !f.silent:
			return modelTry{end: waitPromiseLong}
		}
	}
	if f.brokeOff && f.before.BrokenOff >= maxBrokenOffWaits {
		return modelTry{end: waitNotAllowed}
	}
	if l.outage == 0 && !f.unsent {
		if !f.busy || f.before.Waits >= maxBusyWaits {
			return modelTry{end: waitNotAllowed}
		}
		return modelTry{at: f.at.Add(firstModelWait << f.before.Waits)}
	}
	return f.withinOutage(backoff, l)
}

// withinOutage returns the next try of an outage that is waited for: at the latest when it has lasted for too long.
func (f modelFailure) withinOutage(backoff time.Time, l modelWaitLimits) modelTry {
	left := l.outageOf(f) - f.at.Sub(f.silentSince())
	switch {
	case left <= 0 && l.outage == 0:
		return modelTry{end: waitNotAllowed}
	case left <= 0:
		return modelTry{end: waitTooLong}
	}
	if end := f.at.Add(left); end.Before(backoff) {
		return modelTry{at: end}
	}
	return modelTry{at: backoff}
}

// promised returns the next try if a provider named a time. A provider that was unavailable again after such a time is
// asked less often than it says, and Models without such a time are asked meanwhile.
func (f modelFailure) promised(backoff time.Time) modelTry {
	at := f.until
	if !f.before.PromisedSince.IsZero() && backoff.After(at) || f.silent && backoff.Before(at) {
		at = backoff
	}
	return modelTry{at: at, until: f.until}
}

// silentSince returns the time from which limits.modelOutage counts.
func (f modelFailure) silentSince() time.Time { return cmp.Or(f.before.SilentSince, f.since) }

// show returns a try as the status shows it.
func (f modelFailure) show(t modelTry) approval.ModelTry {
	return approval.ModelTry{
		Since: cmp.Or(f.before.Since, f.since), Next: t.at,
		Promised: t.end == waitPromiseLong || !t.until.IsZero() && !t.at.Before(t.until),
	}
}

// modelWaitLimits returns the limits of the Run.
func (r *run) modelWaitLimits() modelWaitLimits {
	limits := r.config.Task.Limits
	l := modelWaitLimits{outage: task.DefaultModelOutage, promise: approval.DefaultWait}
	if limits.ModelOutageSeconds != nil {
		l.outage = time.Duration(max(*limits.ModelOutageSeconds, 0)) * time.Second
	}
	if limits.WaitSeconds > 0 {
		l.promise = time.Duration(limits.WaitSeconds) * time.Second
	}
	return l
}

// failure classifies a failed call.
func (c *modelCaller) failure(m *Model, err error) modelFailure {
	now := c.run.config.Now().UTC()
	after := model.RetryAfter(err)
	f := modelFailure{before: c.records.read().Outage, since: cmp.Or(c.turn.failedAt, now), at: now, silent: after == 0}
	f.brokeOff = model.BreaksOff(err)
	_, f.busy = errors.AsType[*model.RateLimitedError](err)
	if unavailable, ok := errors.AsType[*model.UnavailableError](err); ok {
		f.busy = unavailable.Status == model.StatusOverloaded
	}
	from, ok := errors.AsType[*source.Error](err)
	f.check = "its endpoint"
	if _, f.unsent = errors.AsType[*model.NoCredentialError](err); f.unsent {
		f.check = cmp.Or(m.Credential, f.check)
		if ok {
			f.check = from.Credential
		}
	}
	switch {
	case ok && !from.Until.IsZero():
		f.until = from.Until.UTC()
	case after > 0:
		f.until = now.Add(after)
	}
	return f
}

// waitOut waits until the model may be asked again; next then asks it. It returns false at once if no wait helps
// against the error.
func (c *modelCaller) waitOut(ctx context.Context, m *Model, err error) (bool, error) {
	if !model.Outage(err) {
		return false, nil
	}
	f, limits := c.failure(m, err), c.run.modelWaitLimits()
	next := f.next(limits)
	if next.end == waitNotAllowed {
		return false, nil
	}
	c.records.account.Add(func(used *step.Meter) { used.OutageCalls += c.turn.requests })
	try := f.show(next)
	try.Model, try.Message = m.Name, err.Error()
	if from, ok := errors.AsType[*source.Error](err); ok {
		try.Model, try.Message = from.Model, from.Err.Error()
	}
	try.Message = c.run.config.Redact.String(redact.Printable(try.Message))
	if next.end != waitGoesOn {
		return true, c.giveUp(m, f, next.end, try)
	}
	mark := journal.Mark{Type: journal.MarkOutage, Since: f.since, Until: next.until, BrokeOff: f.brokeOff}
	if err := c.records.Record(journal.Record{Kind: journal.KindMark, Mark: &mark}); err != nil {
		return true, fmt.Errorf("recording a wait for a model: %w", err)
	}
	return true, c.waitUntil(ctx, try)
}

// giveUp returns the error that ends a Run that waited too long.
func (c *modelCaller) giveUp(m *Model, f modelFailure, why waitEnd, last approval.ModelTry) error {
	c.gaveUp = last.Show()
	cause, limits := strings.TrimSuffix(task.Cut(last.Message, maxCause), "."), c.run.modelWaitLimits()
	if last.Model != m.Name {
		cause = "Model " + last.Model + ": " + cause
	}
	where := c.actor.Place
	fallbacks := ", add spec.fallbacks to Model " + m.Name
	if where == place.Program {
		fallbacks = ""
	}
	if why == waitPromiseLong {
		return task.End(task.ReasonModelUnavailable, "Model %s is unavailable: its provider asks to wait until %s, beyond %s (%s): %s. Raise %s%s, or raise the limits at the provider",
			m.Name, f.until.Format(time.RFC3339), where.Limit("wait"), limits.promise, cause, where.Limit("wait"), fallbacks)
	}
	bound := limits.outageOf(f).String()
	if limits.outageOf(f) == limits.outage {
		bound += " (" + where.Limit("modelOutage") + ")"
	}
	return task.End(task.ReasonModelUnavailable, "Model %s was unavailable for %s, since %s: %s. Raise %s%s, or check %s",
		m.Name, bound, clockTime(f.silentSince(), f.at), cause, where.Limit("modelOutage"), fallbacks, f.check)
}

// waitUntil waits for the next try, or until there is something else to do. After it, next decides.
func (c *modelCaller) waitUntil(ctx context.Context, try approval.ModelTry) error {
	c.turn.announced = false
	if c.wait == nil {
		c.wait = c.run.requests.BeginModelWait(try)
	} else {
		c.wait.Set(try)
	}
	paused, early := false, false
	for now := c.run.config.Now(); !early && now.Before(try.Next); now = c.run.config.Now() {
		c.emitWait(try, now)
		left := try.Next.Sub(now)
		late := time.NewTimer(min(left, cmp.Or(c.run.config.Remind, left)))
		err := c.run.requests.Wait(ctx, approval.Wait{Reason: approval.ForModel, Late: late.C, Until: func(now signals.Signals) (bool, error) {
			paused = now.Paused
			early = paused || c.run.requests.Leaving() != nil
			return early, nil
		}})
		late.Stop()
		if errors.Is(err, signals.ErrStopped) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	if !paused {
		return nil
	}
	// A user paused the Run, perhaps because of the outage. The time of the pause does not count as outage.
	c.stopWaiting()
	return c.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkOutage}})
}

// emitWait emits the event of a wait.
func (c *modelCaller) emitWait(try approval.ModelTry, now time.Time) {
	text := fmt.Sprintf("Waiting for Model %s since %s, next try %s: %s", try.Model, clockTime(try.Since, now), clockTime(try.Next, now), try.Message)
	c.records.Emit(task.Cut(text, task.MaxSummary), events.StateChanged{State: approval.StateModel, ModelWait: try.Show()})
}

// clockTime returns a time without its date if that is today.
func clockTime(t, now time.Time) string {
	t = t.UTC()
	if t.Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.Format("15:04:05 UTC")
	}
	return t.Format(time.RFC3339)
}

// beginRequest counts a request to a model. If an earlier attempt waited for the model, or this attempt did before
// other work, that wait continues.
func (c *modelCaller) beginRequest(name string) {
	c.turn.requests++
	since := c.records.read().Outage.Since
	if c.wait == nil && !since.IsZero() {
		c.wait = c.run.requests.BeginModelWait(approval.ModelTry{Model: name, Since: since, Next: c.run.config.Now()})
		c.run.reportNow()
	}
	if c.wait != nil {
		c.wait.Ask()
	}
}

// answered ends the outage of a model. The outage began before the answer.
func (c *modelCaller) answered(m string) {
	outage := c.records.read().Outage
	if outage.Since.IsZero() {
		return
	}
	c.records.account.Add(func(used *step.Meter) { used.OutageCalls += c.turn.requests - 1 })
	c.stopWaiting()
	if !c.turn.announced {
		c.announce(m, outage.Since)
	}
}

// answering ends the wait for the model when its answer begins: the rest of the answer may take minutes.
func (c *modelCaller) answering() {
	if c.wait == nil || c.turn.announced {
		return
	}
	c.wait.Answering()
	c.announce(c.turn.asked, c.records.read().Outage.Since)
}

// announce emits the event that a Model has begun to answer after an outage: the answer may still break off.
func (c *modelCaller) announce(m string, since time.Time) {
	now := c.run.config.Now()
	c.turn.announced = true
	c.run.status.setModel(m, now) // one report says that the wait is over, and why
	text := fmt.Sprintf("Model %s has begun to answer after an outage of %s", m, now.Sub(since).Round(time.Second))
	c.records.Emit(text, events.StateChanged{State: stateWorking})
	c.run.reportNow()
}

// stopWaiting ends the wait for the model, because the session does something else.
func (c *modelCaller) stopWaiting() {
	if c.wait != nil {
		c.wait.End()
		c.wait = nil
	}
}
