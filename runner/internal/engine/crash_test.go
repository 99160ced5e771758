package engine

import (
	"context"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/model/retry"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Whatever goes wrong, what is known of the work is told at its end: the next
// attempt goes by it.

func TestACrashLosesNothingThatIsKnown(t *testing.T) {
	cases := map[string]func(*testRun){
		"in the driver of a model": func(s *testRun) {
			s.model.turns[1].during = func(context.Context) error { panic("boom") }
		},
		"beside a call": func(s *testRun) {
			s.Events = &fragile{Sink: s.sink, left: 1}
		},
	}
	for name, breaks := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls("Bash {}"), calls("Bash {}"))
			s.Task.Meter = step.Meter{Steps: 4, Usage: step.Usage{InputTokens: 1000}}
			breaks(s)
			out := s.run(t)
			if out.Reason != task.ReasonRunnerFailed || out.Message != "the runner crashed: boom" || !strings.Contains(out.Stack, "engine") {
				t.Errorf("ended %s: %s\n%s", out.Reason, out.Message, out.Stack)
			}
			if p := out.Progress; p.Effects != task.EffectsBegun || p.Counts.Steps < 5 || p.Counts.ToolCalls < 1 || p.Usage.InputTokens < 1010 {
				t.Errorf("told %+v", p)
			}
		})
	}
}

// fragile is a Sink that panics on the result of a call.
type fragile struct {
	Sink
	mu   sync.Mutex
	left int
}

func (f *fragile) Emit(scope step.Scope, message string, p events.Payload) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, finished := p.(events.CallFinished); finished {
		panic("boom")
	}
	f.Sink.Emit(scope, message, p)
}

// A slowDesk takes as long over the report of one call as another call needs to
// report that effects begin.
type slowDesk struct {
	*fakeReporter
	latest task.Progress // what would be written now; guarded by the mu of fakeReporter
	slow   atomic.Bool
	// The slow report has begun; effects are reported; the slow report is over.
	begun, effectsReported, heard chan struct{}
}

func (d *slowDesk) keep(now func() task.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.latest = now()
}

func (d *slowDesk) Report(now func() task.Progress) {
	if p := now(); p.Step.Kind == task.KindTool && d.slow.CompareAndSwap(false, true) {
		close(d.begun)
		<-d.effectsReported
		d.keep(now)
		close(d.heard)
	}
}

func (d *slowDesk) Commit(_ context.Context, now func() task.Progress) error {
	d.keep(now)
	if now().Effects != "" {
		close(d.effectsReported)
		<-d.heard
	}
	return nil
}

func TestAReportOfBeforeNeverStandsInForEffects(t *testing.T) {
	var d *slowDesk
	bash := newTool("Bash", tool.Once, func(context.Context, tool.Call) (tool.Result, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		return tool.Result{Text: "effects " + d.latest.Effects}, nil
	})
	read := newTool("Read", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		<-d.begun
		return tool.Result{}, nil
	})
	s := newTestRun(enginetest.Toolbox{read, bash}, calls("Read {}", "Read {}", "Bash {}"), says("ok"))
	s.Actor.Agent.ParallelTools = 2 // Bash begins when one Read is over and the other is still being reported
	d = &slowDesk{fakeReporter: s.reporter, begun: make(chan struct{}), effectsReported: make(chan struct{}), heard: make(chan struct{})}
	s.Report = d
	s.run(t)
	if got := s.steps(t)[4].Text(); got != "effects "+task.EffectsBegun {
		t.Errorf("an effect began while the latest report said %q", got)
	}
}

// A context that has ended already does not hide that the journal failed.
func TestAJournalThatFailsBehindTheLastMinuteEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(enginetest.Toolbox{newTool("Wait", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			<-ctx.Done()
			return tool.Result{}, ctx.Err()
		})}, calls("Wait {}"))
		s.Task.Limits.DurationSeconds = 60
		left := 4 // the result is not recorded
		s.Journal = crashingLog{Memory: s.journal, left: &left}
		if out := s.run(t); out.Reason != task.ReasonDurationLimit {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

func TestAnEndThatIsRecordedOutlivesSigterm(t *testing.T) {
	var s *testRun
	finish := ending("Finish")
	finish.Call = func(context.Context, tool.Call) (tool.Result, error) {
		s.sigterm()
		return tool.Result{Text: "done"}, nil
	}
	s = newTestRun(enginetest.Toolbox{finish}, calls(`Finish {}`, `Finish {}`))
	if out := s.run(t); out.Reason != task.ReasonFinished || out.Text != "done" {
		t.Errorf("ended %s: %s", out.Reason, out.Message)
	}
	sound(t, s)
}

// interruptible is a fakeReporter at which a report of effects waits until SIGTERM,
// which comes once something else is under way.
type interruptible struct {
	*fakeReporter
	underWay chan struct{}
	sigterm  func()
}

func (i interruptible) Commit(ctx context.Context, now func() task.Progress) error {
	if err := i.fakeReporter.Commit(ctx, now); err != nil || now().Effects == "" {
		return err
	}
	<-i.underWay
	i.sigterm()
	<-ctx.Done()
	return context.Cause(ctx)
}

func TestSigtermWhileEffectsAreReportedDoesNotEndOtherCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		underWay := make(chan struct{})
		read := newTool("Read", tool.ReadOnly, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
			close(underWay)
			select {
			case <-ctx.Done():
				return tool.Result{}, ctx.Err()
			case <-time.After(time.Second):
				return tool.Result{Text: "all of it"}, nil
			}
		})
		s := newTestRun(enginetest.Toolbox{read, echo("Bash", tool.Once)}, calls("Read {}", "Bash {}"))
		s.Report = interruptible{s.reporter, underWay, s.sigterm}
		if out := s.run(t); out.Reason != task.ReasonInterrupted {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
		state := s.state(t)
		if got := state.Results["s2c1"]; got.Text() != "all of it" {
			t.Errorf("Read was told %q", got.Text())
		}
		if open := state.Open(); len(open) != 1 || open[0].Name != "Bash" || len(state.Intents) != 1 {
			t.Errorf("open %v, begun %v; want Bash open and not begun", open, state.Intents)
		}
	})
}

func TestTheMeterRunsSinceTheRunnerBegan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, says("never"))
		s.Began = time.Now()
		s.Task.Limits.DurationSeconds = 60
		time.Sleep(time.Minute) // for a key
		out := s.run(t)
		if out.Reason != task.ReasonDurationLimit || out.Progress.Usage.DurationSeconds != 60 {
			t.Errorf("ended %s after %d s", out.Reason, out.Progress.Usage.DurationSeconds)
		}
	})
}

func TestASummaryIsCutOnlyWithoutItsSecrets(t *testing.T) {
	const canary = "sk-canary-0123456789"
	s := newTestRun(enginetest.Toolbox{newTool("Leak", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{Text: "x", Summary: strings.Repeat("x", task.MaxSummary-12) + canary}, nil
	})}, calls("Leak {}"), says("ok"))
	s.Redact = redact.New(redact.Secret{Name: "anthropic", Key: "api-key", Value: []byte(canary)})
	out := s.run(t)
	if text := mustJSON(t, out.Progress) + mustJSON(t, s.sink.all); strings.Contains(text, canary[:6]) {
		t.Errorf("a piece of the key is in %s", text)
	}
}

func TestNamesOfTheLastStepsAreBounded(t *testing.T) {
	s := newTestRun(nil, calls(strings.Repeat("T", 200)+" {}"), says("ok"))
	s.Actor.Model.Name = strings.Repeat("m", 200)
	for _, r := range s.run(t).Progress.Recent {
		if len(r.Name) > maxName {
			t.Errorf("a name of %d bytes: %s", len(r.Name), r.Name)
		}
	}
}

func TestAMissingKeyNamesTheSecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil)
		s.Actor.Model.Model = keyless{}
		s.Actor.Model.Credential = "the key api-key of the Secret anthropic"
		if out := s.run(t); out.Reason != task.ReasonModelUnavailable || !strings.Contains(out.Message, s.Actor.Model.Credential) {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

// keyless is a model whose credential is gone.
type keyless struct{}

func (keyless) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		yield(model.Delta{}, &model.NoCredentialError{Message: "it is empty"})
	}
}

// A key that is deleted in the middle of a Run is waited for, and the Run continues with its steps.
func TestADeletedKeyIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, fails(&model.NoCredentialError{Message: "Secret gpt has no key api-key"}), says("done"))
		s.Actor.Model.Model = retry.New(s.Actor.Model.Model, retry.Options{})
		out := s.run(t)
		if used := out.Progress.Usage.DurationSeconds; out.Reason != task.ReasonFinished || used != 0 {
			t.Errorf("ended %s after %d s of limits.duration: %s", out.Reason, used, out.Message)
		}
		want := []string{
			"Waiting for Model m since 00:00:00 UTC, next try 00:00:30 UTC: the model's credential cannot be read: Secret gpt has no key api-key",
			"Model m has begun to answer after an outage of 30s",
		}
		if diff := cmp.Diff(want, s.stateMessages()); diff != "" {
			t.Errorf("the log -want +got:\n%s", diff)
		}
	})
}
