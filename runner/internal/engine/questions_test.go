package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func answers(name, request, value string) task.Decision {
	return task.Decision{Name: name, By: "ann", Request: request, Type: task.DecisionAnswer, Value: value}
}

// runWithQuestions is a testRun whose agent asks people, in a bubble of time.
func runWithQuestions(c *fakeSignals, turns ...turn) *testRun {
	s := newTestRun(enginetest.Toolbox{askTool(), echo("Read", tool.ReadOnly)}, turns...)
	s.withApprovers(c)
	return s
}

// running starts a testRun; what it returns waits for its end.
func (tr *testRun) running(ctx context.Context) func() Outcome {
	out := make(chan Outcome, 1)
	go func() { out <- Run(ctx, tr.Config) }()
	return func() Outcome { return <-out }
}

func TestAQuestionWaitsForItsAnswer(t *testing.T) {
	cases := map[string]task.Decision{
		"by its id":                        answers("r.s2c1", "s2c1", "main"),
		"as the only one":                  answers("r.a", "", "main"),
		"in a message to a Run that waits": message("r.m", "main"),
	}
	for name, said := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := runWithQuestions(c, calls(`Ask {"q":"Which branch?"}`), says("ok"))
				end := s.running(t.Context())
				synctest.Wait()
				p := s.reporter.last()
				want := []task.Pending{{ID: "s2c1", Kind: task.PendingQuestion, Question: "Which branch?", AskedAt: "2000-01-01T00:00:00Z", ExpiresAt: "2000-01-08T00:00:00Z"}}
				want[0].DisplayDigest = loggedRequest(t, s).ComputeDisplayDigest()
				if diff := cmp.Diff(want, p.Pending); diff != "" || p.State != approval.StateAnswer {
					t.Errorf("state %q, pending -want +got:\n%s", p.State, diff)
				}
				c.say(said)
				out := end()
				if got := s.transcript(t); !strings.Contains(got, "tool: ann says main\nassistant: ok") {
					t.Errorf("the session is\n%s", got)
				}
				p = out.Progress
				if diff := cmp.Diff([]task.Decided{{Name: said.Name, Request: "s2c1"}}, p.Decided, typeless); diff != "" || len(p.Pending) > 0 || p.State != "" {
					t.Errorf("in the end %+v; decided -want +got:\n%s", p, diff)
				}
				if len(s.sink.of(step.EventPending)) != 1 || len(s.sink.of(step.EventDecided)) != 1 {
					t.Errorf("events %v", s.sink.types)
				}
			})
		})
	}
}

func TestDecisionsThatFitNothingAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals(answers("early", "s9c9", "x"))
		s := runWithQuestions(c, calls(`Ask {"q":"a"}`, `Ask {"q":"b"}`), says("ok"))
		end := s.running(t.Context())
		synctest.Wait()
		c.say(answers("which", "", "x"))
		c.say(task.Decision{Name: "grant", Request: "s2c1", Type: task.DecisionGrant, Steps: 3})
		c.say(task.Decision{Name: "odd", Type: "Bless"})
		c.say(answers("two", "s2c2", "2"))
		c.say(answers("one", "s2c1", "1"))
		c.say(answers("late", "s2c1", "3"))
		want := []task.Decided{
			{Name: "early", Request: "s9c9", Refused: fmt.Sprintf(approval.RefusedUnknown, "s9c9")},
			{Name: "which", Refused: approval.RefusedAmbiguous},
			{Name: "grant", Request: "s2c1", Refused: fmt.Sprintf(approval.RefusedKind, "s2c1", "Question", "Grant")},
			{Name: "odd", Refused: fmt.Sprintf(approval.RefusedType, "Bless")},
			{Name: "two", Request: "s2c2"},
			{Name: "one", Request: "s2c1"},
			{Name: "late", Request: "s2c1", Refused: fmt.Sprintf(approval.RefusedUnknown, "s2c1")},
		}
		if diff := cmp.Diff(want, end().Progress.Decided, typeless); diff != "" {
			t.Errorf("decided -want +got:\n%s", diff)
		}
		if got := s.transcript(t); !strings.Contains(got, "tool: ann says 1\ntool: ann says 2") {
			t.Errorf("the session is\n%s", got)
		}
	})
}

func TestAQuestionThatNobodyAnswersExpires(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runWithQuestions(newSignals(), calls(`Ask {"q":"a"}`), says("ok"))
		s.Task.Limits.WaitSeconds = 3600
		began := time.Now()
		if out := s.run(t); out.Reason != task.ReasonFinished || time.Since(began) != time.Hour || len(out.Progress.Pending) > 0 {
			t.Errorf("ended %s after %s: %+v", out.Reason, time.Since(began), out.Progress)
		}
		if got := s.transcript(t); !strings.Contains(got, "Error: nobody answered") {
			t.Errorf("the session is\n%s", got)
		}
	})
}

func TestWhereNobodyIsThereToAskNobodyIsWaitedFor(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{askTool()}, calls(`Ask {"q":"a"}`), says("ok"))
	if out := s.run(t); out.Reason != task.ReasonFinished {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
}

// Waiting for people does not use up the duration; anything else does.
func TestTheClockStandsStillWhileEverybodyWaitsForPeople(t *testing.T) {
	slow := newTool("Slow", tool.ReadOnly, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		select {
		case <-time.After(10 * time.Second):
		case <-ctx.Done():
		}
		return tool.Result{}, ctx.Err()
	})
	cases := map[string]struct {
		calls []string
		want  int64
	}{
		"alone":              {[]string{`Ask {"q":"a"}`}, 0},
		"beside a slow call": {[]string{`Ask {"q":"a"}`, "Slow {}"}, 10},
		"in another session": {[]string{`agent {"agent":"b"}`}, 0},
		"in one of two":      {[]string{`agent {"agent":"b"}`, `agent {"agent":"c"}`}, 10},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newSignals()
				s := runWithQuestions(c, calls(tc.calls...), says("ok"))
				s.Actor.Tools = enginetest.Toolbox{askTool(), slow, agentTool()}
				s.Actors = fakeAgents{
					"b": fakeAgent("b", enginetest.Toolbox{askTool()}, calls(`Ask {"q":"a"}`), says("b")),
					"c": fakeAgent("c", enginetest.Toolbox{slow}, calls("Slow {}"), says("c")),
				}.actors
				s.Task.Limits.Depth, s.Task.Limits.DurationSeconds = 1, 60
				end := s.running(t.Context())
				synctest.Wait()
				id := s.reporter.last().Pending[0].ID
				time.Sleep(24 * time.Hour)
				c.say(answers("r", id, "x"))
				out := end()
				if out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds != tc.want {
					t.Errorf("ended %s after %d s: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Message)
				}
			})
		})
	}
}

func TestTheStateSaysWhatEverybodyWaitsFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newTool("Slow", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(10 * time.Second)
			return tool.Result{}, nil
		})
		c := newSignals()
		s := runWithQuestions(c, calls(`Ask {"q":"a"}`, "Slow {}"), says("ok"))
		s.Actor.Tools = enginetest.Toolbox{askTool(), slow}
		end := s.running(t.Context())
		time.Sleep(time.Second)
		if p := s.reporter.last(); p.State != "" || len(p.Pending) != 1 {
			t.Errorf("while a call runs the state is %q", p.State)
		}
		time.Sleep(11 * time.Second)
		synctest.Wait()
		if p := s.reporter.last(); p.State != approval.StateAnswer {
			t.Errorf("when only the question is left the state is %q", p.State)
		}
		c.say(answers("r", "s2c1", "x"))
		end()
	})
}

func TestAnInterruptionLeavesAQuestionToTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := runWithQuestions(c, calls(`Ask {"q":"a"}`))
		end := s.running(t.Context())
		synctest.Wait()
		s.sigterm()
		if out := end(); out.Reason != task.ReasonInterrupted || len(s.state(t).Open()) != 1 {
			t.Fatalf("ended %s: %s", out.Reason, out.Message)
		}
		c.say(answers("r", "s2c1", "x"))
		next := s.again(enginetest.Toolbox{askTool()}, says("ok"))
		next.withApprovers(c)
		next.run(t)
		if got := next.transcript(t); !strings.Contains(got, "tool: ann says x\nassistant: ok") {
			t.Errorf("the session is\n%s", got)
		}
	})
}

func TestTheEndOfTheGraceLeavesAQuestionToTheNextAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s := runWithQuestions(newSignals(), calls(`Ask {"q":"a"}`))
		end := s.running(ctx)
		synctest.Wait()
		s.sigterm() // comes first: the grace begins with it
		cancel(signals.ErrInterrupted)
		if out := end(); out.Reason != task.ReasonInterrupted || len(s.state(t).Open()) != 1 {
			t.Fatalf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

func TestAStopGivesAQuestionAResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := runWithQuestions(newSignals(), calls(`agent {"agent":"b"}`))
		s.Actor.Tools = enginetest.Toolbox{agentTool()}
		s.Actors = fakeAgents{"b": fakeAgent("b", enginetest.Toolbox{askTool()}, calls(`Ask {"q":"a"}`), says("b"))}.actors
		s.Task.Limits.Depth = 1
		end := s.running(t.Context())
		synctest.Wait()
		s.signals.stop()
		if out := end(); out.Reason != task.ReasonStopped {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		wholeTree(t, s)
	})
}

func TestAUsedUpDurationOfAnotherBranchEndsAQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := newTool("Hang", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})
		s := runWithQuestions(newSignals(), calls(`Ask {"q":"a"}`, "Hang {}"))
		s.Actor.Tools = enginetest.Toolbox{askTool(), hang}
		s.Task.Limits.DurationSeconds = 60
		if out := s.run(t); out.Reason != task.ReasonDurationLimit {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		sound(t, s)
	})
}

func TestADecisionIsRecordedBeforeItIsUsed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := runWithQuestions(c, calls(`Ask {"q":"a"}`), says("ok"))
		s.Journal = refusesDecisions{s.journal}
		end := s.running(t.Context())
		synctest.Wait()
		c.say(answers("a", "s2c1", "x"))
		if out := end(); out.Reason != task.ReasonRunnerFailed {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		for _, st := range s.steps(t) {
			if st.Role == step.RoleTool {
				t.Errorf("the agent was told %q", st.Text())
			}
		}
	})
}

type refusesDecisions struct{ *journal.Memory }

func (r refusesDecisions) Append(rec journal.Record) error {
	if rec.Kind == journal.KindDecide {
		return errors.New("no space for decisions")
	}
	return r.Memory.Append(rec)
}

// Of two questions one is answered: the Run waits for the other, and says so.
func TestOfTwoQuestionsOneIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newSignals()
		s := runWithQuestions(c, calls(`Ask {"q":"Which branch?"}`, `Ask {"q":"Which file?"}`), says("ok"))
		end := s.running(t.Context())
		time.Sleep(time.Second)
		c.say(answers("r.s2c2", "s2c2", "a.go"))
		time.Sleep(time.Second)
		if p := s.reporter.last(); p.State != approval.StateAnswer || len(p.Pending) != 1 || p.Pending[0].ID != "s2c1" {
			t.Errorf("state %q, pending %+v", p.State, p.Pending)
		}
		c.say(answers("r.s2c1", "s2c1", "main"))
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

// typeless leaves the types of decisions out, which most tests are not about.
var typeless = cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Type" }, cmp.Ignore())

// What is reported of a decision says of which type it was: the operator compares.
func TestADecisionIsReportedWithItsType(t *testing.T) {
	got := decidedOf(journal.Decision{Name: "d", Request: "s2c1", Type: task.DecisionApprove, Digest: "abc"})
	want := task.Decided{Name: "d", Request: "s2c1", Type: "Approve", Digest: "abc"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
