package approval

import (
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
)

// A WaitReason is what a session or a tool call may wait for.
type WaitReason int

// The reasons.
const (
	ForAnswer   WaitReason = iota // of a person
	ForApproval                   // by a person
	ForGrant                      // by a person
	ForPause                      // to be over, which is a person's to say
	ForChild                      // to end, which is a Run of its own
	ForModel                      // that is unavailable; see [ModelWait]
	waitReasons
)

// Activity counts the sessions and tool calls that work or wait. While all of them wait, it stops the clock.
type Activity struct {
	clock *meter.Clock
	now   func() time.Time

	mu           sync.Mutex
	working      int
	waiting      [waitReasons]int
	allWait      bool      // every branch waits
	since        time.Time // when allWait changed
	lastDecision time.Time // when a user decided last, or a child Run ended
	// changed is closed when allWait changes.
	changed chan struct{}
}

// SettleDelay is how long all sessions and calls must wait before the Run counts as waiting. Between the end of a call
// and the next turn of its session, none of them works for a moment.
const SettleDelay = 200 * time.Millisecond

// NewActivity returns an Activity in which nothing works yet.
func NewActivity(clock *meter.Clock, now func() time.Time) *Activity {
	return &Activity{clock: clock, now: now, changed: make(chan struct{})}
}

// Enter counts one more working session or call.
func (a *Activity) Enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.working++
	a.update()
}

// Leave ends what one Enter began.
func (a *Activity) Leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.working--
	a.update()
}

// wait marks a working session or call as waiting until back is called.
func (a *Activity) wait(e WaitReason) (back func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.working--
	a.waiting[e]++
	a.update()
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.working++
		a.waiting[e]--
		a.update()
	}
}

// update stops or starts the clock, and closes changed if all began to wait or one began to work.
func (a *Activity) update() {
	waiting := 0
	for _, n := range a.waiting {
		waiting += n
	}
	resting := a.working == 0 && waiting > 0
	if resting {
		a.clock.Stop()
	} else {
		a.clock.Start()
	}
	if resting != a.allWait {
		a.allWait, a.since = resting, a.now()
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// isIdle reports whether every session and call has waited for at least SettleDelay.
func (a *Activity) isIdle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.allWait && a.now().Sub(a.since) >= SettleDelay
}

// waitedFor returns how long all have waited since a user last decided or a child Run last ended. It returns false if
// any of them works.
func (a *Activity) waitedFor() (time.Duration, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.allWait {
		return 0, false
	}
	since := a.since
	if a.lastDecision.After(since) {
		since = a.lastDecision
	}
	return a.now().Sub(since), true
}

// onlyModels reports whether every session and call waits for a model.
func (a *Activity) onlyModels() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for reason, n := range a.waiting {
		if n > 0 && WaitReason(reason) != ForModel {
			return false
		}
	}
	return a.allWait
}

// noteDecision records the time at which a user decided something, or a child Run ended.
func (a *Activity) noteDecision() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastDecision = a.now()
}

// Busy reports whether any session or call works.
func (a *Activity) Busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.working > 0
}

// change returns a channel that is closed when all begin to wait, or one of them works again.
func (a *Activity) change() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// state returns what the whole Run waits for, as the status names it. It is empty while any session or call works.
func (a *Activity) state() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.working > 0:
		return ""
	case a.waiting[ForPause] > 0:
		return StatePaused
	case a.waiting[ForApproval] > 0:
		return StateApproval
	case a.waiting[ForAnswer] > 0:
		return StateAnswer
	case a.waiting[ForGrant] > 0:
		return StateGrant
	case a.waiting[ForModel] > 0:
		return StateModel
	case a.waiting[ForChild] > 0:
		return StateChild
	}
	return ""
}

// States of the Run, in its status.
const (
	StateAnswer   = "AwaitingAnswer"
	StateGrant    = "AwaitingAnswer" // an approval is of a call
	StateApproval = "AwaitingApproval"
	StateModel    = "WaitingForModel"
	StateChild    = "AwaitingChild"
	StatePaused   = "Paused"
)
