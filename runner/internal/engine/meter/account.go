// Package meter counts what a Run uses (steps, calls, tokens, cost and time) and reports when a limit is reached. Each
// session has an account, which also counts into the accounts above it. The clock stops while the whole Run waits.
package meter

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Account is the usage of one session and of the sessions below it. It never decreases. Usage of one account also
// counts into all accounts above it, up to the Run's own.
type Account struct {
	clock    *Clock
	mu       *sync.Mutex // guards all accounts of the Run
	parent   *Account    // nil: the Run's own
	limits   task.Limits
	start    time.Duration // of the clock, when it was opened
	used     step.Meter    // its duration is that of the time before start
	reserved int64         // calls that may yet count as ToolCalls
}

// New returns the account of a Run, which starts with the usage of earlier attempts.
func New(clock *Clock, limits task.Limits, before step.Meter) *Account {
	return &Account{clock: clock, mu: &sync.Mutex{}, limits: limits, used: before}
}

// Open makes an account below this one.
func (a *Account) Open(limits task.Limits, before step.Meter) *Account {
	return &Account{clock: a.clock, mu: a.mu, parent: a, limits: limits, start: a.clock.Elapsed(), used: before}
}

// Add adds usage.
func (a *Account) Add(change func(*step.Meter)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ; a != nil; a = a.parent {
		change(&a.used)
	}
}

// Read returns the usage until now.
func (a *Account) Read() step.Meter {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.at(a.clock.Elapsed())
}

// at returns the usage at a time on the clock.
func (a *Account) at(elapsed time.Duration) step.Meter {
	used := a.used
	used.DurationSeconds += int64((elapsed - a.start) / time.Second)
	return used
}

// Chain returns the usage of the session and of each one above it, without the Run's own.
func (a *Account) Chain() []step.Meter {
	if a.parent == nil {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	var all []step.Meter
	elapsed := a.clock.Elapsed()
	for ; a.parent != nil; a = a.parent {
		all = append(all, a.at(elapsed))
	}
	return all
}

// Reached returns the first limit that is used up, of the session or of one above it, or nil.
func (a *Account) Reached() *Limit { return a.ReachedWith(step.Usage{}) }

// ReachedWith returns the first limit that is used up when more usage is added, or nil.
func (a *Account) ReachedWith(more step.Usage) *Limit {
	return a.reached(more, func(l task.Limits) task.Limits { return l })
}

// SpentWith reports whether a limit of tokens or of cost is used up when more usage is added, whatever
// the other limits are.
func (a *Account) SpentWith(more step.Usage) bool {
	return a.reached(more, func(l task.Limits) task.Limits { return task.Limits{Tokens: l.Tokens, CostMicroUSD: l.CostMicroUSD} }) != nil
}

// reached returns the first limit that is used up when more usage is added, of the limits that only keeps.
func (a *Account) reached(more step.Usage, only func(task.Limits) task.Limits) *Limit {
	a.mu.Lock()
	defer a.mu.Unlock()
	elapsed := a.clock.Elapsed()
	for ; a != nil; a = a.parent {
		used := a.at(elapsed)
		used.Usage = used.Usage.Plus(more)
		if g := Reached(used, only(a.limits)); g != nil {
			g.ofRun = a.parent == nil
			return g
		}
	}
	return nil
}

// Left is the part of limits that is left, from 0 to 1; 1 if there is no limit.
type Left struct{ Steps, Tokens, Cost float64 }

// Left returns, for each limit, the smallest part that is left in the session and in those above it.
func (a *Account) Left() Left {
	a.mu.Lock()
	defer a.mu.Unlock()
	least := Left{1, 1, 1}
	for ; a != nil; a = a.parent {
		least.Steps = min(least.Steps, part(a.used.Steps, a.limits.Steps))
		least.Tokens = min(least.Tokens, part(a.used.Usage.Total(), a.limits.Tokens))
		least.Cost = min(least.Cost, part(a.used.Usage.CostMicroUSD, a.limits.CostMicroUSD))
	}
	return least
}

// part returns the part of a limit that is left.
func part(used, limit int64) float64 {
	if limit <= 0 {
		return 1
	}
	return min(max(1-float64(used)/float64(limit), 0), 1)
}

// Limits returns the limits of the account, including what users granted.
func (a *Account) Limits() task.Limits {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.limits
}

// Near returns the limits of which four fifths are used.
func (a *Account) Near() []Limit { return near(a.Read(), a.Limits()) }

// Extend raises limits. A limit that is not set stays unset.
func (a *Account) Extend(steps, tokens, costMicroUSD int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for limit, more := range map[*int64]int64{
		&a.limits.Steps: steps, &a.limits.Tokens: tokens, &a.limits.CostMicroUSD: costMicroUSD,
	} {
		if *limit > 0 && more > 0 {
			*limit = max(*limit+more, *limit) // a sum that overflows adds nothing
		}
	}
}

// Reserve reserves a tool call. It returns false if a limit allows no more calls.
func (a *Account) Reserve() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for b := a; b != nil; b = b.parent {
		if limit := b.limits.ToolCalls; limit > 0 && b.used.ToolCalls+b.reserved >= limit {
			return false
		}
	}
	for ; a != nil; a = a.parent {
		a.reserved++
	}
	return true
}

// Release ends a reservation.
func (a *Account) Release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for ; a != nil; a = a.parent {
		a.reserved--
	}
}

// Deadline returns a context that ends when the duration of the session is used up. The place of the agent is for the
// message.
func (a *Account) Deadline(ctx context.Context, at place.Place) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	limit := a.limits.DurationSeconds
	if limit == 0 {
		return ctx, func() { cancel(nil) }
	}
	used := step.Meter{DurationSeconds: limit}
	end := Reached(used, task.Limits{DurationSeconds: limit}).End(at)
	fire := func() { cancel(end) }
	due := a.start + time.Duration(limit-a.used.DurationSeconds)*time.Second
	if a.clock.Elapsed() >= due {
		fire()
	}
	stop := a.clock.At(due, fire)
	return ctx, func() { stop(); cancel(nil) }
}

// A Limit is one limit and how much of it is used.
type Limit struct {
	Name      string
	Used, Max int64
	reason    task.Reason
	show      func(int64) string
	ofRun     bool // it is the Run's own
}

// String describes how much of the limit is used.
func (l Limit) String() string {
	return fmt.Sprintf("Used %s of %s %s", l.show(l.Used), l.show(l.Max), l.Name)
}

func count(n int64) string { return fmt.Sprint(n) }

func duration(n int64) string { return (time.Duration(n) * time.Second).String() }

// limitsOf returns the limits in the order in which they are checked. An unknown cost counts as zero, so that only
// known costs reach a cost limit.
func limitsOf(used step.Meter, l task.Limits) [6]Limit {
	return [...]Limit{
		{Name: "steps", reason: task.ReasonStepLimit, Used: used.Steps, Max: l.Steps, show: count},
		{Name: "modelCalls", reason: task.ReasonStepLimit, Used: used.ModelCalls - used.OutageCalls, Max: l.ModelCalls, show: count},
		{Name: "toolCalls", reason: task.ReasonStepLimit, Used: used.ToolCalls, Max: l.ToolCalls, show: count},
		{Name: "tokens", reason: task.ReasonTokenLimit, Used: used.Usage.Total(), Max: l.Tokens, show: count},
		{Name: "cost", reason: task.ReasonCostLimit, Used: used.Usage.CostMicroUSD, Max: l.CostMicroUSD, show: task.Money},
		{Name: "duration", reason: task.ReasonDurationLimit, Used: used.DurationSeconds, Max: l.DurationSeconds, show: duration},
	}
}

// Reached returns the first limit that is used up, or nil.
func Reached(used step.Meter, l task.Limits) *Limit {
	all := limitsOf(used, l)
	for i := range all {
		if g := &all[i]; g.Max > 0 && g.Used >= g.Max {
			found := *g
			return &found
		}
	}
	return nil
}

// End returns the error with which a limit ends an agent. The place of the agent is for the message.
func (l Limit) End(at place.Place) *task.EndError {
	of := " of the Run if it sets one, otherwise of the Agent"
	if at == place.Program {
		of = ""
	}
	return task.End(l.reason, "%s; raise %s%s, or give the Run less to do", l, at.Limit(l.Name), of)
}

// Extensible reports whether a user may grant more of the limit.
func (l Limit) Extensible() bool {
	return l.ofRun && (l.Name == "steps" || l.Name == "tokens" || l.Name == "cost")
}

// Granted returns how much of the limit a Decision grants.
func (l Limit) Granted(d task.Decision) int64 {
	switch l.Name {
	case "steps":
		return d.Steps
	case "tokens":
		return d.Tokens
	case "cost":
		return d.CostMicroUSD
	}
	return 0
}

// near returns the limits of which four fifths are used.
func near(used step.Meter, l task.Limits) []Limit {
	var most []Limit
	for _, g := range limitsOf(used, l) {
		if g.Max > 0 && g.Used >= g.Max-g.Max/5 && g.Used < g.Max {
			most = append(most, g)
		}
	}
	return most
}

// Request returns the id of the request to raise the limit. A raised limit that is reached again has another id,
// because each request is decided once.
func (l Limit) Request() string { return fmt.Sprintf("limit-%s-%d", l.Name, l.Max) }

// A Clock measures how long a runner has worked. It is stopped while all sessions wait
// for a user or a child Run.
type Clock struct {
	now func() time.Time

	mu         sync.Mutex
	began      time.Time
	stoppedFor time.Duration // in total, before stoppedAt
	stoppedAt  time.Time     // zero while it runs
	timers     map[*clockTimer]struct{}
}

// A clockTimer calls fire when the clock reaches a time.
type clockTimer struct {
	at    time.Duration
	fire  func()
	timer *time.Timer
}

// NewClock returns a clock that runs since the runner began; zero: since now.
func NewClock(now func() time.Time, began time.Time) *Clock {
	k := &Clock{now: now, began: began, timers: map[*clockTimer]struct{}{}}
	if k.began.IsZero() {
		k.began = now()
	}
	return k
}

// Elapsed returns the time on the clock. It is never negative, even if the machine's time is set back.
func (c *Clock) Elapsed() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.elapsedLocked()
}

func (c *Clock) elapsedLocked() time.Duration {
	until := c.stoppedAt
	if until.IsZero() {
		until = c.now()
	}
	return max(until.Sub(c.began)-c.stoppedFor, 0)
}

// Stop stops the clock.
func (c *Clock) Stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.stoppedAt.IsZero() {
		return
	}
	c.stoppedAt = c.now()
	for a := range c.timers {
		a.timer.Stop()
	}
}

// Start starts the clock again.
func (c *Clock) Start() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stoppedAt.IsZero() {
		return
	}
	c.stoppedFor += max(c.now().Sub(c.stoppedAt), 0)
	c.stoppedAt = time.Time{}
	for a := range c.timers {
		a.timer.Reset(a.at - c.elapsedLocked())
	}
}

// At calls fire in a goroutine of its own when the clock reaches elapsed, unless stop is
// called before.
func (c *Clock) At(elapsed time.Duration, fire func()) (stop func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &clockTimer{at: elapsed, fire: fire}
	a.timer = time.AfterFunc(elapsed-c.elapsedLocked(), fire)
	if !c.stoppedAt.IsZero() {
		a.timer.Stop()
	}
	c.timers[a] = struct{}{}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		a.timer.Stop()
		delete(c.timers, a)
	}
}
