package engine

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A pauser is a model whose provider pauses its answer, as it does while it uses
// tools of its own: each request costs 100 tokens and 1000 micro-dollars.
type pauser struct {
	pauses int
	sent   int    // requests
	during func() // between the first request and the second
}

func (p *pauser) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		var used step.Usage
		for n := range p.pauses + 1 {
			p.sent++
			used = used.Plus(step.Usage{InputTokens: 90, OutputTokens: 10, CostMicroUSD: 1000, Priced: true})
			if !yield(model.Delta{Text: "looked. "}, nil) {
				return
			}
			if n == p.pauses {
				break
			}
			if n == 0 && p.during != nil {
				p.during()
			}
			sum := used
			if !yield(model.Delta{Continued: true, Usage: &sum}, nil) {
				return
			}
		}
		yield(model.Delta{Finish: step.FinishStop, Usage: &used}, nil)
	}
}

// Each request of an answer that pauses is a model call, and no limit is
// overshot by more than one of them.
func TestAnAnswerThatPausesIsHeldToTheLimitsBetweenItsRequests(t *testing.T) {
	cases := map[string]struct {
		limits task.Limits
		want   task.Reason
		sent   int
	}{
		"no limit":            {task.Limits{}, task.ReasonFinished, 6},
		"tokens":              {task.Limits{Tokens: 250}, task.ReasonTokenLimit, 3},
		"cost":                {task.Limits{CostMicroUSD: 2000}, task.ReasonCostLimit, 2},
		"modelCalls":          {task.Limits{ModelCalls: 4}, task.ReasonStepLimit, 4},
		"a limit far away":    {task.Limits{Tokens: 601, ModelCalls: 7, CostMicroUSD: 6001}, task.ReasonFinished, 6},
		"the limit in itself": {task.Limits{Tokens: 100}, task.ReasonTokenLimit, 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestRun(nil)
			p := &pauser{pauses: 5}
			s.Actor.Model.Model = p
			s.Task.Limits = tc.limits
			out := s.run(t)
			used := out.Progress.Usage
			if out.Reason != tc.want || p.sent != tc.sent {
				t.Errorf("ended %s after %d requests: %s", out.Reason, p.sent, out.Message)
			}
			if n := int64(tc.sent); out.Progress.Counts.ModelCalls != n || used.InputTokens+used.OutputTokens != 100*n {
				t.Errorf("counted %+v, %+v", out.Progress.Counts, used)
			}
			if out.Progress.Counts.Errors != 0 {
				t.Errorf("counted %d errors", out.Progress.Counts.Errors)
			}
			if got := strings.Count(s.transcript(t), "looked"); tc.want == task.ReasonFinished && got != 6 {
				t.Errorf("the session is\n%s", s.transcript(t))
			}
		})
	}
}

// A stop and a pause of the Run are heard between the requests.
func TestAnAnswerThatPausesIsStoppedBetweenItsRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil)
		s.Durable = true
		p := &pauser{pauses: 5, during: func() { s.signals.pause(true) }}
		s.Actor.Model.Model = p
		out := s.run(t)
		if out.Reason != task.ReasonPaused || p.sent != 1 || out.Progress.Usage.InputTokens != 90 {
			t.Errorf("ended %s after %d requests, used %+v", out.Reason, p.sent, out.Progress.Usage)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil)
		p := &pauser{pauses: 5, during: s.signals.stop}
		s.Actor.Model.Model = p
		out := s.run(t)
		if out.Reason != task.ReasonStopped || p.sent != 1 || out.Progress.Usage.InputTokens != 90 {
			t.Errorf("ended %s after %d requests, used %+v", out.Reason, p.sent, out.Progress.Usage)
		}
	})
}

// A runner that dies between the requests has charged those before.
func TestWhatAPausedAnswerCostIsRecordedBeforeItGoesOn(t *testing.T) {
	s := newTestRun(nil)
	s.Actor.Model.Model = &pauser{pauses: 3}
	s.run(t)
	var intents []int64
	for rec, err := range s.journal.Read() {
		if err != nil {
			t.Fatal(err)
		}
		if rec.Kind == journal.KindIntent {
			intents = append(intents, rec.Intent.InputTokens)
		}
	}
	if len(intents) != 4 || intents[1] != intents[0]+100 || intents[3] != intents[0]+300 {
		t.Errorf("what is charged to whoever takes up the session: %v", intents)
	}
}
