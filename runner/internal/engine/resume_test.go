package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// errKilled stands for the process being gone: nothing after it is recorded.
var errKilled = errors.New("killed")

// A crashingLog journal dies after so many records, as a SIGKILL would have it.
type crashingLog struct {
	*journal.Memory
	left *int
	died *bool // may be nil
}

func (c crashingLog) Append(r journal.Record) error {
	if *c.left == 0 {
		if c.died != nil {
			*c.died = true
		}
		return errKilled
	}
	*c.left--
	return c.Memory.Append(r)
}

// effects counts what really happened in the world, by tool and arguments.
type effects map[string]int

func (e effects) tools() enginetest.Toolbox {
	doing := func(name string, effect tool.Effect) tool.Tool {
		t := newTool(name, effect, func(_ context.Context, c tool.Call) (tool.Result, error) {
			e[name+string(c.Args)]++
			return tool.Result{Text: "did " + name}, nil
		})
		t.Concurrency = tool.Sequential
		return t
	}
	return enginetest.Toolbox{doing("Read", tool.ReadOnly), doing("Write", tool.Idempotent), doing("Bash", tool.Once), ending("Finish")}
}

// conversation is what the model says, whatever it is asked, by how far the
// session has come: it does not notice a resume.
func conversation(steps int) turn {
	switch {
	case steps < 2:
		return calls(`Read {"n":1}`, `Bash {"n":1}`, `Write {"n":1}`)
	case steps < 7:
		return calls(`Bash {"n":2}`)
	default:
		return calls(`Finish {"ok":true}`)
	}
}

// A session is killed behind each of its records in turn, then taken up by the
// next attempt. It always ends the same way; what must not be repeated happens
// once, or is reported to the model as interrupted.
func TestASessionKilledAnywhereEndsTheSame(t *testing.T) {
	whole := newTestRun(effects{}.tools())
	play(t, whole, whole.journal)
	total := 0
	for range whole.journal.Read() {
		total++
	}
	if total < 15 {
		t.Fatalf("the session has only %d records", total)
	}
	for at := range total {
		t.Run(fmt.Sprintf("behind record %d", at), func(t *testing.T) {
			did := effects{}
			s := newTestRun(did.tools())
			left := at
			play(t, s, crashingLog{Memory: s.journal, left: &left})
			next := s.again(did.tools())
			next.Task.Attempt, next.Task.Retry = 2, "the pod was lost"
			out := play(t, next, s.journal)
			if out.Reason != task.ReasonFinished {
				t.Fatalf("ended %s: %s", out.Reason, out.Message)
			}
			sound(t, s)
			for _, n := range []int{1, 2} {
				call := fmt.Sprintf(`Bash{"n":%d}`, n)
				told := strings.Contains(s.transcript(t), toolcall.ResultLost)
				if did[call] > 1 || did[call] == 0 && !told {
					t.Errorf("%s happened %d times, reported as interrupted: %t\n%s", call, did[call], told, s.transcript(t))
				}
			}
			if did[`Read{"n":1}`] == 0 || did[`Write{"n":1}`] == 0 {
				t.Errorf("a call that can be repeated was lost: %v", did)
			}
		})
	}
}

// play runs a testRun on a journal with a model that goes by the session.
func play(t *testing.T, s *testRun, log journal.Log) Outcome {
	t.Helper()
	s.Journal = log
	s.Actor.Agent.OutputSchema = []byte("{}")
	s.Actor.Model.Model = byLength{}
	return s.run(t)
}

// refusing is a fakeReporter that refuses to hear of effects.
type refusing struct{ *fakeReporter }

func (r refusing) Commit(ctx context.Context, now func() task.Progress) error {
	if err := r.fakeReporter.Commit(ctx, now); err != nil || now().Effects == "" {
		return err
	}
	return errors.New("refused")
}

func TestTakingUp(t *testing.T) {
	opened := func(turns ...turn) *testRun {
		return newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, turns...)
	}
	retried := func(s *testRun, turns ...turn) *testRun {
		next := s.again(enginetest.Toolbox{echo("Read", tool.ReadOnly)}, turns...)
		next.Task.Attempt, next.Task.Retry = 2, "ModelUnavailable"
		return next
	}
	note := fmt.Sprintf(noteAttempt, "ModelUnavailable", 2)

	t.Run("after a failure of the model the session goes on", func(t *testing.T) {
		first := opened(calls("Read {}"), fails(errors.New("gone")))
		if out := first.run(t); out.Reason != task.ReasonModelUnavailable {
			t.Fatalf("ended %s", out.Reason)
		}
		second := retried(first, says("ok"))
		second.run(t)
		if got, want := second.transcript(t), "user: go\nassistant:  Read{}\ntool: Read{}\nuser: "+note+"\nassistant: ok"; got != want {
			t.Errorf("the session is\n%s\nwant\n%s", got, want)
		}
	})
	t.Run("after InvalidOutput the model is asked again", func(t *testing.T) {
		first := opened(says(""), says(""))
		if out := first.run(t); out.Reason != task.ReasonInvalidOutput {
			t.Fatalf("ended %s", out.Reason)
		}
		if out := retried(first, says("ok")).run(t); out.Reason != task.ReasonFinished || out.Text != "ok" {
			t.Errorf("ended %s: %q", out.Reason, out.Text)
		}
	})
	t.Run("a session that had finished is finished, and nobody is asked", func(t *testing.T) {
		first := opened(says("done"))
		first.run(t)
		second := retried(first)
		if out := second.run(t); out.Reason != task.ReasonFinished || out.Text != "done" || len(second.model.asked) > 0 {
			t.Errorf("ended %s: %q after %d questions", out.Reason, out.Text, len(second.model.asked))
		}
	})
	t.Run("where the journal is gone the session begins anew and says so", func(t *testing.T) {
		s := opened(says("ok"))
		s.Task.Attempt, s.Task.Retry = 2, "PodLost"
		s.run(t)
		if got, want := s.steps(t)[0].Text(), "go\n\n"+fmt.Sprintf(noteFresh, "PodLost", 2); got != want {
			t.Errorf("it begins with %q, want %q", got, want)
		}
	})
	t.Run("a model call that was cut is charged its estimate", func(t *testing.T) {
		first := opened()
		left := 2 // the question and the intent to ask the model
		first.Journal = crashingLog{Memory: first.journal, left: &left}
		first.run(t)
		second := first.again(nil, says("ok"))
		second.Actor.Model.Price = func(_ string, u step.Usage, _ time.Time) step.Usage {
			u.CostMicroUSD, u.Priced = u.InputTokens, true
			return u
		}
		p := second.run(t).Progress
		if p.Counts.ModelCalls != 2 || p.Counts.Errors != 1 || p.Usage.InputTokens <= 10 || p.Usage.Cost == "" {
			t.Errorf("counts %+v, usage %+v", p.Counts, p.Usage)
		}
	})
	t.Run("the tools are told what succeeded before", func(t *testing.T) {
		first := opened(calls(`Read {"n":1}`, `Nope {}`), calls(`Read {"n":2}`), fails(errors.New("gone")))
		first.run(t)
		second := retried(first, says("ok"))
		var told []string
		second.Actor.Recall = func(name string, args json.RawMessage) { told = append(told, name+string(args)) }
		second.run(t)
		if diff := cmp.Diff([]string{`Read{"n":1}`, `Read{"n":2}`}, told); diff != "" {
			t.Errorf("recalled -want +got:\n%s", diff)
		}
	})
}

// A call whose usage was lost has the prices of when it was sent, and the requests of its answer
// that had been reported keep what they cost.
func TestALostCallHasThePricesOfItsTime(t *testing.T) {
	priceByTime := func(times *[]time.Time) func(string, step.Usage, time.Time) step.Usage {
		return func(_ string, u step.Usage, at time.Time) step.Usage {
			*times = append(*times, at)
			u.CostMicroUSD, u.Priced = 7, true
			return u
		}
	}
	cases := map[string]struct {
		model  model.Model
		kept   int // records before the crash
		output int64
		cost   string // with the 1000 of the answer after the crash
	}{
		"the first request": {&pauser{}, 2, 10, "0.001007USD"},
		"the third request": {&pauser{pauses: 3}, 4, 30, "0.003007USD"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				first := newTestRun(nil)
				first.Actor.Model.Model = tc.model
				first.Journal = crashingLog{Memory: first.journal, left: &tc.kept}
				first.run(t)
				sent := time.Now()
				time.Sleep(48 * time.Hour)
				var times []time.Time
				second := first.again(nil)
				second.Actor.Model = Model{Model: &pauser{}, Name: "m", Price: priceByTime(&times)}
				got := second.run(t).Progress.Usage
				if len(times) != 1 || !times[0].Equal(sent) || got.Cost != tc.cost || got.OutputTokens != tc.output {
					t.Errorf("priced at %v, want %s; used %+v, want %d tokens of output and %s", times, sent, got, tc.output, tc.cost)
				}
			})
		})
	}
}

// A call that is lost without a crash has them too.
func TestAnEstimateHasThePricesOfItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil)
		sent := time.Now()
		s.Actor.Model.Model = slowModel{}
		var at []time.Time
		s.Actor.Model.Price = func(_ string, u step.Usage, sent time.Time) step.Usage { at = append(at, sent); return u }
		if out := s.run(t); out.Reason != task.ReasonFinished || len(at) != 1 || !at[0].Equal(sent) {
			t.Errorf("ended %s, priced at %v, want %s", out.Reason, at, sent)
		}
	})
}

// A slowModel answers after an hour and reports no usage.
type slowModel struct{}

func (slowModel) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		time.Sleep(time.Hour)
		yield(model.Delta{Text: "ok", Finish: step.FinishStop}, nil)
	}
}

// What is new is inserted behind the results of open calls, never before.
func TestNothingIsInsertedBetweenACallAndItsResult(t *testing.T) {
	tools := enginetest.Toolbox{echo("Bash", tool.Once)}
	first := newTestRun(tools, calls("Bash {}"))
	first.Report = refusing{first.reporter}
	if out := first.run(t); out.Reason != task.ReasonRunnerFailed {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	second := first.again(tools, says("ok"))
	second.Task.Attempt, second.Task.Retry = 2, "RunnerFailed"
	second.run(t)
	want := "user: go\nassistant:  Bash{}\ntool: Bash{}\nuser: " + fmt.Sprintf(noteAttempt, "RunnerFailed", 2) + "\nassistant: ok"
	if got := second.transcript(t); got != want {
		t.Errorf("the session is\n%s\nwant\n%s", got, want)
	}
}

// Tools recall a call as it was really made, in whichever session, though a
// compaction hid it long ago.
func TestToolsRecallCallsAsTheyWereMade(t *testing.T) {
	changes := middleware.Layer{Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			if c.Name == "Read" {
				c.Args = json.RawMessage(`{"n":"changed"}`)
			}
			return next(ctx, c)
		}
	}}
	var told []string
	recall := func(name string, args json.RawMessage) { told = append(told, name+string(args)) }
	build := func(log *journal.Memory) *testRun {
		stack, _ := middleware.Build(middleware.Layer{Name: "changes", Tool: changes.Tool})
		worker := &Actor{
			Agent: task.Agent{Name: "w", ParallelTools: 1}, Model: Model{Model: bySession{2, `Read {"n":1}`}, Name: "m"},
			Tools: enginetest.Toolbox{echo("Read", tool.ReadOnly)}, Stack: stack, Recall: recall,
		}
		s := delegating(fakeAgents{"w": worker})
		s.Actor.Model.Model, s.Actor.Stack, s.Actor.Recall = bySession{1, `agent {"agent":"w"}`}, stack, recall
		s.journal, s.Journal = log, log
		return s
	}
	first := build(&journal.Memory{})
	left := 14 // both pages are read, the child is asked for the last time
	first.Journal = crashingLog{Memory: first.journal, left: &left}
	first.run(t)
	told = nil
	if out := build(first.journal).run(t); out.Reason != task.ReasonFinished {
		t.Fatalf("ended %s: %s", out.Reason, out.Message)
	}
	if diff := cmp.Diff([]string{`Read{"n":"changed"}`, `Read{"n":"changed"}`}, told); diff != "" {
		t.Errorf("told -want +got:\n%s", diff)
	}
}
