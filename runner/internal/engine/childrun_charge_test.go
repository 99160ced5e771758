package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What a child Run used counts into the limits of who asked for it, and of all
// above; what is not known makes the whole unknown.
func TestWhatAChildRunUsedIsCharged(t *testing.T) {
	cost := int64(2_000_000)
	cases := map[string]struct {
		used  task.Usage
		want  task.Reason
		known bool
	}{
		"a little":          {priced(10, 10), task.ReasonFinished, true},
		"nothing":           {task.Usage{}, task.ReasonFinished, true},
		"all tokens":        {priced(100_000, 10), task.ReasonTokenLimit, true},
		"all cost":          {task.Usage{CostMicroUSD: &cost}, task.ReasonCostLimit, true},
		"an unknown cost":   {task.Usage{OutputTokens: 7}, task.ReasonFinished, false},
		"less than nothing": {task.Usage{OutputTokens: -1000, InputTokens: -1}, task.ReasonFinished, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newOperator()
				s := raising(n, calls(review), says("ok"))
				c := finished("s2c1", "well")
				c.Usage = tc.used
				n.say(c)
				out := s.run(t)
				if out.Reason != tc.want || (out.Progress.Usage.CostMicroUSD != nil) != tc.known || out.Progress.Usage.TotalTokens < 15 {
					t.Errorf("ended %s having used %+v: %s", out.Reason, out.Progress.Usage, out.Message)
				}
			})
		})
	}
}

// An agent in the pod has child Runs too. Its own limits count them, under a path.
func TestAnAgentInThePodHasAChildRun(t *testing.T) {
	cases := map[string]struct {
		limits task.Limits
		want   string // what the root reads
	}{
		"within its limits": {task.Limits{Tokens: 5000}, "b says so"},
		"beyond them":       {task.Limits{Tokens: 900}, "Error: The agent b ended without a result (TokenLimit)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newOperator()
				s := raising(n, calls(`agent {"agent":"b"}`), says("ok"))
				s.Actor.Tools = enginetest.Toolbox{agentTool()}
				b := fakeAgent("b", enginetest.Toolbox{childTool()}, calls(review), says("b says so"))
				b.Agent.Limits = tc.limits
				s.Actors, s.Task.Limits.Depth = fakeAgents{"b": b}.actors, 1
				end := s.running(t.Context())
				synctest.Wait()
				if p := s.reporter.last().Pending; len(p) != 1 || p[0].ID != "s2c1.s2c1" || p[0].Agent != "reviewer" {
					t.Errorf("pending %+v", p)
				}
				n.say(finished("s2c1.s2c1", "well"))
				out := end()
				if got := s.steps(t)[2].Text(); !strings.HasPrefix(got, tc.want) || out.Reason != task.ReasonFinished || out.Progress.Usage.CacheWriteTokens != 1000 {
					t.Errorf("ended %s; the root reads %q, having used %+v", out.Reason, got, out.Progress.Usage)
				}
				wholeTree(t, s)
			})
		})
	}
}

// If a call is cancelled while the Run goes on, its child Run is to be stopped, and what it used is
// charged. If it does not end in time, the report says that nothing of it is charged: the operator
// counts it. If the Run itself ends, nothing is waited for.
func TestACallForAChildRunIsCancelled(t *testing.T) {
	cases := map[string]struct {
		ends    time.Duration // of the child Run; 0: it does not
		limit   int64         // of the Run
		want    task.Reason
		charged int64
		took    time.Duration
	}{
		"it is stopped":       {61 * time.Second, 0, task.ReasonFinished, 1000, 61 * time.Second},
		"it is not stopped":   {0, 0, task.ReasonFinished, 0, 60*time.Second + toolcall.StopTimeout},
		"the Run ends, too":   {61 * time.Second, 60, task.ReasonDurationLimit, 0, 60 * time.Second},
		"it had ended before": {60*time.Second - 1, 0, task.ReasonFinished, 1000, 60 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := newOperator()
				s := raising(n, calls(`agent {"agent":"b"}`), says("ok"))
				s.Actor.Tools = enginetest.Toolbox{agentTool()}
				b := fakeAgent("b", enginetest.Toolbox{childTool(), hangTool()}, calls("Hang {}", review))
				b.Agent.Limits.DurationSeconds = 60
				s.Actors, s.Task.Limits.Depth, s.Task.Limits.DurationSeconds = fakeAgents{"b": b}.actors, 1, tc.limit
				began := time.Now()
				end := s.running(t.Context())
				if tc.ends > 0 {
					time.AfterFunc(tc.ends, func() { n.say(finished("s2c1.s2c2", "")) })
				}
				out := end()
				used := out.Progress.Usage
				if out.Reason != tc.want || used.CacheWriteTokens != tc.charged || used.ChildTokens == nil || *used.ChildTokens != tc.charged || time.Since(began) != tc.took {
					t.Errorf("ended %s after %s having used %+v: %s", out.Reason, time.Since(began), used, out.Message)
				}
				asked := slices.ContainsFunc(slices.Concat(s.reporter.reported, s.reporter.committed), func(p task.Progress) bool {
					return slices.ContainsFunc(p.Pending, func(q task.Pending) bool { return q.Cancelled })
				})
				if want := tc.limit == 0 && tc.ends != 60*time.Second-1; asked != want {
					t.Errorf("the operator was asked to stop it: %t", asked)
				}
				wholeTree(t, s)
			})
		})
	}
}

// Effects are accepted before anybody is shown what is asked for.
func TestEffectsBeginBeforeAChildRunIsAskedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := raising(newOperator(), calls(review))
		s.reporter.refuse = nil
		refusing := &refusesEffects{fakeReporter: s.reporter}
		s.Report = refusing
		if out := s.run(t); out.Reason != task.ReasonFenced {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		for _, p := range append(s.reporter.committed, s.reporter.reported...) {
			if len(p.Pending) > 0 {
				t.Errorf("shown %v", p.Pending)
			}
		}
	})
}

// refusesEffects does not accept that effects begin.
type refusesEffects struct{ *fakeReporter }

func (r *refusesEffects) Commit(ctx context.Context, now func() task.Progress) error {
	_ = r.fakeReporter.Commit(ctx, now)
	if r.last().Effects != "" {
		return task.End(task.ReasonFenced, "another attempt took over")
	}
	return nil
}

// The end of a child Run is in the journal before anybody knows of it, and is
// charged with it or not at all.
func TestTheEndOfAChildRunIsRecordedBeforeItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review), says("ok"))
		s.Journal = refusesChildren{s.journal}
		n.say(finished("s2c1", "well"))
		out := s.run(t)
		if out.Reason != task.ReasonRunnerFailed || out.Progress.Usage.CacheWriteTokens != 0 || len(s.state(t).Open()) != 1 {
			t.Errorf("ended %s having used %+v: %s", out.Reason, out.Progress.Usage, out.Message)
		}
	})
}

type refusesChildren struct{ *journal.Memory }

func (r refusesChildren) Append(rec journal.Record) error {
	if rec.Kind == journal.KindChild {
		return errors.New("no space for children")
	}
	return r.Memory.Append(rec)
}

// The policy goes before: what a person approves is what is asked for, under an id
// of its own.
func TestAChildRunIsApprovedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newOperator()
		s := raising(n, calls(review), says("ok"))
		s.CanAsk, s.Actor.Policy = true, fakePolicy{"child": {Answer: toolcall.Ask, Rule: "children"}}
		end := s.running(t.Context())
		synctest.Wait()
		p := s.reporter.last()
		if len(p.Pending) != 1 || p.Pending[0].Kind != task.PendingApproval || p.Effects != "" {
			t.Fatalf("effects %q, pending %+v", p.Effects, p.Pending)
		}
		n.fakeSignals.say(approve("d", p.Pending[0].ID, ""))
		synctest.Wait()
		p = s.reporter.last()
		if len(p.Pending) != 1 || p.Pending[0].ID != "s2c1-2" || p.Pending[0].Kind != task.PendingDelegation || p.Effects == "" {
			t.Fatalf("effects %q, pending %+v", p.Effects, p.Pending)
		}
		n.say(finished("s2c1", "not this one"))
		n.say(finished("s2c1-2", "well"))
		end()
		if got := s.steps(t)[2].Text(); got != "well" {
			t.Errorf("the model reads %q", got)
		}
	})
}

func TestNoChildRunIsAskedForThatIsDenied(t *testing.T) {
	n := newOperator()
	s := raising(n, calls(review), says("ok"))
	s.Actor.Policy = fakePolicy{"child": {Answer: toolcall.Deny, Rule: "no-children"}}
	out := s.run(t)
	if len(s.doneWith("child")) > 0 || out.Progress.Effects != "" || !strings.Contains(s.transcript(t), "no-children") {
		t.Errorf("the session is\n%s", s.transcript(t))
	}
}
