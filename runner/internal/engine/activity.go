package engine

import (
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
)

// What a branch of the work may wait for.
type errand int

const (
	forAnswer   errand = iota // of a person
	forApproval               // by a person
	forGrant                  // by a person
	forPause                  // to be over, which is a person's to say
	forChild                  // to end, which is a Run of its own
	forProvider               // that asked to wait
	errands
)

// A crew is the branches of the work: sessions, and the calls of their turns.
// It knows whether all of them wait, and makes the clock stand still while all
// of them wait for people or child Runs.
type crew struct {
	clock *meter.Clock
	now   func() time.Time

	mu      sync.Mutex
	working int
	waiting [errands]int
	resting bool      // all wait
	since   time.Time // that is so, or not
	decided time.Time // when a person decided last, or a child Run ended
	// news is closed when that changes.
	news chan struct{}
}

// steady is how long all must wait before that counts: where one branch goes
// over to another nobody works for a moment.
const steady = 200 * time.Millisecond

func newCrew(c Config) *crew {
	return &crew{clock: meter.NewClock(c.Now, c.Began), now: c.Now, news: make(chan struct{})}
}

// enter and leave stand around what one branch does.
func (c *crew) enter() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working++
	c.settle()
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working--
	c.settle()
}

// wait says that a branch does nothing but wait, until it is back.
func (c *crew) wait(e errand) (back func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.working--
	c.waiting[e]++
	c.settle()
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.working++
		c.waiting[e]--
		c.settle()
	}
}

// settle makes the clock, and those who wait for news, see how things stand.
func (c *crew) settle() {
	others := c.waiting[forAnswer] + c.waiting[forApproval] + c.waiting[forGrant] + c.waiting[forPause] + c.waiting[forChild]
	if c.working == 0 && others > 0 && c.waiting[forProvider] == 0 {
		c.clock.Stop()
	} else {
		c.clock.Start()
	}
	if resting := c.working == 0 && others+c.waiting[forProvider] > 0; resting != c.resting {
		c.resting, c.since = resting, c.now()
		close(c.news)
		c.news = make(chan struct{})
	}
}

// idle says whether every branch waits, and has for a while.
func (c *crew) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resting && c.now().Sub(c.since) >= steady
}

// still is for how long every branch has waited for people or child Runs, and
// nothing came of any; false: not all of them do.
func (c *crew) still() (time.Duration, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.resting || c.waiting[forProvider] > 0 {
		return 0, false
	}
	since := c.since
	if c.decided.After(since) {
		since = c.decided
	}
	return c.now().Sub(since), true
}

// hears notes that a person has decided something, or that a child Run ended.
func (c *crew) hears() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.decided = c.now()
}

// busy says whether any branch works.
func (c *crew) busy() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.working > 0
}

// change returns what is closed when all begin to wait, or one goes on.
func (c *crew) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.news
}

// state is what the work as a whole waits for, in the words of the status;
// empty while some of it goes on.
func (c *crew) state() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.working > 0:
		return ""
	case c.waiting[forPause] > 0:
		return statePaused
	case c.waiting[forApproval] > 0:
		return stateApproval
	case c.waiting[forAnswer] > 0:
		return stateAnswer
	case c.waiting[forGrant] > 0:
		return stateGrant
	case c.waiting[forProvider] > 0:
		return stateLimited
	case c.waiting[forChild] > 0:
		return stateChild
	}
	return ""
}

// States of the Run, in its status.
const (
	stateAnswer   = "AwaitingAnswer"
	stateGrant    = "AwaitingAnswer" // an approval is of a call
	stateApproval = "AwaitingApproval"
	stateLimited  = "RateLimited"
	stateChild    = "AwaitingChild"
	statePaused   = "Paused"
)
