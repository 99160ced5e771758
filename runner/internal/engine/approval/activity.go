package approval

import (
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
)

// A WaitReason is what a branch of the work may wait for.
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

// Activity counts the branches of the work that work or wait: sessions, and the
// calls of their turns. It knows whether all of them wait, and makes the clock stand
// still while they do.
type Activity struct {
	clock *meter.Clock
	now   func() time.Time

	mu           sync.Mutex
	working      int
	waiting      [waitReasons]int
	allWait      bool      // every branch waits
	since        time.Time // that is so, or not
	lastDecision time.Time // when a person decided last, or a child Run ended
	// changed is closed when that changes.
	changed chan struct{}
}

// SettleDelay is how long all must wait before that counts: where one branch goes
// over to another nothing works for a moment.
const SettleDelay = 200 * time.Millisecond

// NewActivity returns one in which nothing works yet.
func NewActivity(clock *meter.Clock, now func() time.Time) *Activity {
	return &Activity{clock: clock, now: now, changed: make(chan struct{})}
}

// Enter says that one more branch works.
func (a *Activity) Enter() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.working++
	a.update()
}

// Leave ends what Enter began.
func (a *Activity) Leave() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.working--
	a.update()
}

// wait says that a branch does nothing but wait, until it is back.
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

// update stops or starts the clock, and closes changed if that is news.
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

// isIdle says whether every branch waits, and has for a while.
func (a *Activity) isIdle() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.allWait && a.now().Sub(a.since) >= SettleDelay
}

// waitedFor is for how long every branch has waited, and no user decided and no child Run
// ended; false: not all of them do.
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

// onlyModels reports whether every branch waits for a model.
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

// noteDecision notes that a person has decided something, or that a child Run ended.
func (a *Activity) noteDecision() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.lastDecision = a.now()
}

// Busy says whether any branch works.
func (a *Activity) Busy() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.working > 0
}

// change returns what is closed when all begin to wait, or one goes on.
func (a *Activity) change() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.changed
}

// state is what the work as a whole waits for, in the words of the status;
// empty while some of it goes on.
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
