package engine

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An absence is how one and the same story is interrupted, and what people say in
// it.
type absence struct {
	durable bool
	paused  int // the record behind which it is paused; 0: none
	kill    int // the record behind which it is killed; 0: none
	say     func(task.Pending) task.Decision
}

// What people say to all that is asked for approval. Questions are answered.
var sayings = map[string]func(task.Pending) task.Decision{
	"yes": func(q task.Pending) task.Decision { return approve("r."+q.ID, q.ID, "") },
	"no":  func(q task.Pending) task.Decision { return deny("r."+q.ID, q.ID, "too risky") },
	"yes to all": func(q task.Pending) task.Decision {
		d := approve("r."+q.ID, q.ID, "")
		d.Scope = task.ScopeRun
		return d
	},
	"nothing": nil, // nobody decides in time
}

// A story is a session that is played over any number of attempts.
type story struct {
	absence
	people *fakeSignals
	did    effects
	log    *journal.Memory
}

// Leaving and coming back, any number of times and wherever it is killed, makes
// no difference to what is said, nor to what is done.
func TestASessionThatIsLeftEndsAsOneThatIsNot(t *testing.T) {
	for name, say := range sayings {
		t.Run(name, func(t *testing.T) {
			var want string
			total := 0
			synctest.Test(t, func(t *testing.T) { want, total = absence{say: say}.play(t) })
			for at := range total {
				for _, a := range []absence{{durable: true, kill: at}, {kill: at}, {durable: true, paused: at}} {
					a.say = say
					synctest.Test(t, func(t *testing.T) {
						got, _ := a.play(t)
						// A command that was cut is told as such, and only that differs.
						if diff := cmp.Diff(want, got); diff != "" && !strings.Contains(got, toolcall.ResultLost) {
							t.Errorf("durable %t, killed %d, paused %d: -want +got:\n%s", a.durable, a.kill, a.paused, diff)
						}
					})
				}
			}
		})
	}
}

// play returns what was said in the end, and in how many records.
func (a absence) play(t *testing.T) (told string, records int) {
	p := &story{absence: a, people: newSignals(), did: effects{}, log: &journal.Memory{}}
	for attempt := 1; attempt <= 20; attempt++ {
		s := p.attempt(attempt)
		over := make(chan struct{})
		go p.decideMeanwhile(s.reporter, over)
		out := s.run(t)
		close(over)
		p.decide(out.Progress.Pending)
		if out.Reason != task.ReasonFinished {
			time.Sleep(10 * time.Minute)
			continue
		}
		told = s.transcript(t)
		p.once(t, told)
		sound(t, s)
		for range p.log.Read() {
			records++
		}
		return told, records
	}
	t.Fatalf("durable %t, killed %d, paused %d: it does not end", a.durable, a.kill, a.paused)
	return "", 0
}

func (p *story) attempt(number int) *testRun {
	s := newTestRun(append(p.did.tools(), askTool()))
	s.withApprovers(p.people)
	s.journal, s.Journal = p.log, p.log
	if p.kill > 0 && number == 1 {
		s.Journal = crashingLog{Memory: p.log, left: &p.kill}
	}
	if p.paused > 0 && number == 1 {
		s.Signals = pausedBehind{p.people, p.log, p.paused}
	}
	s.Durable, s.Actor.Policy, s.Task.Attempt = p.durable, asksBefore, number
	s.Task.Limits.WaitSeconds = 1000
	s.Actor.Model.Model = bySession{2, `Bash {"n":1}`, `Ask {"q":"a"}`, `Read {"n":1}`, `Write {"n":1}`}
	return s
}

// decideMeanwhile has people decide while a runner is there: a durable one has
// left by then.
func (p *story) decideMeanwhile(d *fakeReporter, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(3 * time.Minute):
			p.decide(d.last().Pending)
		}
	}
}

func (p *story) decide(pending []task.Pending) {
	for _, q := range pending {
		switch {
		case q.Kind != task.PendingApproval:
			p.people.say(answers("r."+q.ID, q.ID, "main"))
		case p.say != nil:
			p.people.say(p.say(q))
		}
	}
}

// once asserts that each command was made once, or is told to have been cut, and
// only where people approved it.
func (p *story) once(t *testing.T, told string) {
	t.Helper()
	approved := map[string]bool{}
	released := false
	for r := range p.log.Read() {
		if r.Decision != nil && r.Decision.Type == task.DecisionApprove {
			approved[approval.CallOf(r.Decision.Request)] = true
			released = released || r.Decision.Scope == task.ScopeRun
		}
		if r.Intent != nil && r.Intent.Name == "Bash" && !approved[r.Intent.CallID] && !released {
			t.Errorf("%s was begun, and nobody had approved it", r.Intent.CallID)
		}
	}
	for call, n := range p.did {
		if strings.HasPrefix(call, "Bash") && n != 1 && !strings.Contains(told, toolcall.ResultLost) || n > 2 {
			t.Errorf("%s was made %d times", call, n)
		}
	}
}

// pausedBehind are signals that are paused once so much is recorded, for good.
type pausedBehind struct {
	*fakeSignals
	log *journal.Memory
	at  int
}

func (p pausedBehind) Current() (signals.Signals, <-chan struct{}) {
	now, changed := p.fakeSignals.Current()
	n := 0
	for range p.log.Read() {
		n++
	}
	now.Paused = n >= p.at
	return now, changed
}
