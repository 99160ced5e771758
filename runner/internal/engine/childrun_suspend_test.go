package engine

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// With nothing to do but to wait for child Runs a runner leaves, if its journal
// stays; the next finds the end there at once.
func TestARunnerThatOnlyWaitsForChildRunsLeaves(t *testing.T) {
	cases := map[string]struct {
		calls []string
		state string
	}{
		"a child Run":    {[]string{review}, approval.StateChild},
		"two":            {[]string{review, review}, approval.StateChild},
		"and a person":   {[]string{review, `Ask {"q":"a"}`}, approval.StateAnswer},
		"a person first": {[]string{`Ask {"q":"a"}`, review}, approval.StateAnswer},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := raising(newOperator(), calls(tc.calls...))
				s.Durable, s.CanAsk = true, true
				began := time.Now()
				out := s.run(t)
				if took := time.Since(began); out.Reason != task.ReasonWaiting || took != approval.DefaultHold {
					t.Fatalf("ended %s after %s: %s", out.Reason, took, out.Message)
				}
				if p := out.Progress; p.State != tc.state || len(p.Pending) != len(tc.calls) || p.Effects == "" {
					t.Errorf("state %q, effects %q, pending %+v", p.State, p.Effects, p.Pending)
				}
			})
		})
	}
}

// One whose journal ends with its pod stays.
func TestARunnerWithoutAVolumeWaitsForChildRunsInItsPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review), says("ok"))
		end := s.running(t.Context())
		time.Sleep(24 * time.Hour)
		if p := s.reporter.last(); p.State != approval.StateChild || len(p.Pending) != 1 {
			t.Errorf("state %q, pending %v", p.State, p.Pending)
		}
		n.say(finished("s2c1", "well"))
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

func TestTheEndOfAChildRunThatIsThereAlreadyIsReadAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review))
		s.Durable = true
		out := s.run(t)
		was := out.Progress.Pending
		time.Sleep(30 * 24 * time.Hour)
		n.say(finished("s2c1", "well"))
		next := s.again(s.Actor.Tools.(enginetest.Toolbox), says("ok"))
		next.withOperator(n)
		next.Durable = true
		began := time.Now()
		out = next.run(t)
		if out.Reason != task.ReasonFinished || time.Since(began) != 0 || len(next.model.asked) != 1 || out.Progress.Usage.CacheWriteTokens != 1000 {
			t.Errorf("ended %s after %s: %s", out.Reason, time.Since(began), out.Message)
		}
		if got := next.steps(t)[2].Text(); got != "well" {
			t.Errorf("the model reads %q", got)
		}
		for _, p := range slices.Concat(next.reporter.reported, next.reporter.committed) {
			if len(p.Pending) > 0 && cmp.Diff(was, p.Pending) != "" {
				t.Errorf("asked %+v, then %+v", was, p.Pending)
			}
		}
	})
}

// An end that is said while the runner leaves is heard by it or by the next
// attempt, and charged once.
func TestTheEndOfAChildRunIsNotLostWhileTheRunnerLeaves(t *testing.T) {
	for off := -2; off <= 2; off++ {
		synctest.Test(t, func(t *testing.T) {
			n := newOperator()
			s := raising(n, calls(review), says("ok"))
			s.Durable = true
			end := s.running(t.Context())
			time.Sleep(approval.DefaultHold + time.Duration(off)*time.Nanosecond)
			n.say(finished("s2c1", "well"))
			out := end()
			if out.Reason == task.ReasonWaiting {
				next := s.again(s.Actor.Tools.(enginetest.Toolbox), says("ok"))
				next.withOperator(n)
				next.Durable = true
				out = next.run(t)
			}
			if got := s.steps(t)[2].Text(); out.Reason != task.ReasonFinished || got != "well" || out.Progress.Usage.CacheWriteTokens != 1000 {
				t.Errorf("%d ns off: ended %s, the model reads %q, used %+v", off, out.Reason, got, out.Progress.Usage)
			}
		})
	}
}

// Whatever ends the wait, the call is left open for the next attempt, with its
// request, or has a result.
func TestWhatEndsTheWaitForAChildRun(t *testing.T) {
	cases := map[string]struct {
		do     func(*testRun)
		beside []string
		want   task.Reason
		told   string // to the model; empty: the call stays open
		state  string
	}{
		"a stop":             {func(s *testRun) { s.signals.stop() }, nil, task.ReasonStopped, fmt.Sprintf(toolcall.ResultAbandoned, "reviewer"), ""},
		"a pause":            {func(s *testRun) { s.signals.pause(true) }, nil, task.ReasonPaused, "", approval.StatePaused},
		"a shutdown":         {func(s *testRun) { s.sigterm() }, nil, task.ReasonInterrupted, "", ""},
		"a used-up duration": {func(*testRun) { time.Sleep(time.Hour) }, []string{"Hang {}"}, task.ReasonDurationLimit, "Interrupted: Used 1m0s of 1m0s duration", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := raising(newOperator(), calls(append(tc.beside, review)...))
				w.Actor.Tools = append(w.Actor.Tools.(enginetest.Toolbox), hangTool())
				w.Durable, w.Task.Limits.DurationSeconds = true, 60
				end := w.running(t.Context())
				time.Sleep(time.Second)
				tc.do(w)
				out := end()
				told, open := w.transcript(t), len(w.state(t).Open())
				if out.Reason != tc.want || out.Progress.State != tc.state || !strings.Contains(told, tc.told) || (open > 0) != (tc.told == "") {
					t.Errorf("ended %s in state %q with %d open calls: %s\n%s", out.Reason, out.Progress.State, open, out.Message, told)
				}
				if kept := tc.want == task.ReasonPaused; (len(out.Progress.Pending) > 0) != kept {
					t.Errorf("pending %v", out.Progress.Pending)
				}
			})
		})
	}
}

// A pause of a runner that may not leave holds it where it is, and says so.
func TestAPauseOfARunnerThatStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review), says("ok"))
		end := s.running(t.Context())
		time.Sleep(time.Second)
		n.pause(true)
		time.Sleep(time.Second)
		if p := s.reporter.last(); p.State != approval.StatePaused || len(p.Pending) != 1 {
			t.Errorf("state %q, pending %v", p.State, p.Pending)
		}
		n.say(finished("s2c1", "well"))
		time.Sleep(time.Hour)
		if len(s.model.asked) != 1 {
			t.Errorf("the model was asked %d times", len(s.model.asked))
		}
		n.pause(false)
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

// A raised is a session with child Runs, in and below its own, that is played over
// any number of attempts.
type raised struct {
	absence
	children *fakeOperator
	log      *journal.Memory
	reported step.Meter // what the status reported last
}

// Wherever it is killed, paused or left, each child Run is asked for once, heard
// once and charged once.
func TestChildRunsAreAskedForAndChargedOnce(t *testing.T) {
	var want string
	total := 0
	synctest.Test(t, func(t *testing.T) { want, total = absence{}.raise(t) })
	if total < 30 {
		t.Fatalf("only %d records", total)
	}
	for at := range total {
		for _, a := range []absence{{durable: true, kill: at}, {kill: at}, {durable: true, paused: at}} {
			synctest.Test(t, func(t *testing.T) {
				if got, _ := a.raise(t); got != want {
					t.Errorf("durable %t, killed %d, paused %d: -want +got:\n%s", a.durable, a.kill, a.paused, cmp.Diff(want, got))
				}
			})
		}
	}
}

// raise returns what was said in the end, and in how many records.
func (a absence) raise(t *testing.T) (told string, records int) {
	p := &raised{absence: a, children: newOperator(), log: &journal.Memory{}}
	for attempt := 1; attempt <= 20; attempt++ {
		s := p.attempt(attempt)
		over := make(chan struct{})
		go p.watch(s.reporter, over)
		out := s.run(t)
		close(over)
		p.reported.Usage = s.reporter.last().Usage.Charged()
		for range 2 {
			p.children.see(s.reporter.last().Pending, endOfRaised)
		}
		if out.Reason != task.ReasonFinished {
			time.Sleep(10 * time.Minute)
			continue
		}
		sound(t, s)
		p.once(t, out.Progress.Usage)
		for range p.log.Read() {
			records++
		}
		return s.transcript(t), records
	}
	t.Fatalf("durable %t, killed %d, paused %d: it does not end", a.durable, a.kill, a.paused)
	return "", 0
}

func (p *raised) attempt(number int) *testRun {
	tools := enginetest.Toolbox{childTool(), agentTool(), echo("Read", tool.ReadOnly)}
	s := newTestRun(tools)
	s.withOperator(p.children)
	s.journal, s.Journal = p.log, p.log
	if p.kill > 0 && number == 1 {
		s.Journal = crashingLog{Memory: p.log, left: &p.kill}
	}
	if p.paused > 0 && number == 1 {
		s.Signals = pausedBehind{p.children.fakeSignals, p.log, p.paused}
	}
	s.Durable, s.Task.Attempt, s.Task.Meter = p.durable, number, p.reported
	s.Task.Limits.Depth = 1
	s.Actor.Model.Model = bySession{2, `child {"n":1}`, `child {"n":2}`, `agent {"agent":"b"}`, `Read {"n":1}`}
	s.Actors = func(Delegation) (*Actor, error) {
		b := fakeAgent("b", tools)
		b.Model.Model = bySession{1, `child {"n":3}`}
		return b, nil
	}
	return s
}

// watch is the operator while a runner is there.
func (p *raised) watch(d *fakeReporter, over <-chan struct{}) {
	for {
		select {
		case <-over:
			return
		case <-time.After(30 * time.Second):
			p.children.see(d.last().Pending, endOfRaised)
		}
	}
}

// endOfRaised is how the child Run of a request ends: one in four has none.
func endOfRaised(q task.Pending) task.Child {
	if strings.HasSuffix(q.ID, "s7c2") {
		return task.Child{Request: q.ID, Message: "nothing is left of limits.tokens"}
	}
	return finished(q.ID, "did "+q.Args)
}

// once asserts that of six child Runs each was made once, and five cost something.
func (p *raised) once(t *testing.T, used task.Usage) {
	t.Helper()
	if len(p.children.made) != 6 || len(p.children.twice) > 0 {
		t.Errorf("made %v, of which again with something else %v", p.children.order, p.children.twice)
	}
	heard := map[string]int{}
	for r := range p.log.Read() {
		if r.Child != nil {
			heard[r.Child.Request]++
		}
	}
	for request, n := range heard {
		if n != 1 {
			t.Errorf("%s was heard %d times", request, n)
		}
	}
	if used.ChildTokens == nil || *used.ChildTokens != used.CacheWriteTokens {
		t.Errorf("killed %d, paused %d: of %d tokens of child Runs %v are said to be theirs", p.kill, p.paused, used.CacheWriteTokens, used.ChildTokens)
	}
	if used.CacheWriteTokens != 5000 {
		t.Errorf("killed %d, paused %d: charged %d for five", p.kill, p.paused, used.CacheWriteTokens)
	}
}
