package engine

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/model/router"
	"github.com/deckhand-dev/deckhand/runner/internal/model/source"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestNextTryOfAModel(t *testing.T) {
	began := time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return began.Add(d) }
	outage := func(waits int) state.Outage { return state.Outage{Since: began, SilentSince: began, Waits: waits} }
	promised := func(waits int) state.Outage { return state.Outage{Since: began, PromisedSince: began, Waits: waits} }
	silent := func(o state.Outage, d time.Duration) modelFailure {
		return modelFailure{before: o, since: at(d), at: at(d), silent: true}
	}
	named := func(o state.Outage, d, until time.Duration) modelFailure {
		return modelFailure{before: o, since: at(d), at: at(d), until: at(until)}
	}
	both := named(state.Outage{}, 0, 2*time.Hour)
	both.silent = true
	bothLate := named(promised(9), time.Hour, 2*time.Hour)
	bothLate.silent = true
	bothTooLong := named(state.Outage{}, 0, 48*time.Hour)
	bothTooLong.silent = true
	busy := func(waits int) modelFailure {
		f := silent(outage(waits), time.Minute)
		f.busy = true
		return f
	}
	brokenOff := func(before state.Outage, times int) modelFailure {
		before.BrokenOff = times
		f := silent(before, time.Minute)
		f.brokeOff = true
		return f
	}
	unsentAt := func(d time.Duration) modelFailure {
		f := silent(outage(3), d)
		f.unsent = true
		return f
	}
	limits := modelWaitLimits{outage: 30 * time.Minute, promise: 24 * time.Hour}
	none := modelWaitLimits{promise: 24 * time.Hour}
	cases := map[string]struct {
		failure modelFailure
		limits  modelWaitLimits
		want    modelTry
	}{
		"the first wait of an outage":                             {silent(state.Outage{}, 0), limits, modelTry{at: at(30 * time.Second)}},
		"the second":                                              {silent(outage(1), time.Minute), limits, modelTry{at: at(2 * time.Minute)}},
		"the fourth":                                              {silent(outage(3), 4*time.Minute), limits, modelTry{at: at(8 * time.Minute)}},
		"the fifth is the longest":                                {silent(outage(4), 8*time.Minute), limits, modelTry{at: at(13 * time.Minute)}},
		"as is each after it":                                     {silent(outage(40), 20*time.Minute), limits, modelTry{at: at(25 * time.Minute)}},
		"the last try is at the limit":                            {silent(outage(6), 28*time.Minute), limits, modelTry{at: at(30 * time.Minute)}},
		"none is after it":                                        {silent(outage(6), 30*time.Minute), limits, modelTry{end: waitTooLong}},
		"a time that the provider named":                          {named(state.Outage{}, 0, 2*time.Hour), limits, modelTry{at: at(2 * time.Hour), until: at(2 * time.Hour)}},
		"it is not bound by the limit of an outage":               {named(outage(6), time.Hour, 2*time.Hour), limits, modelTry{at: at(2 * time.Hour), until: at(2 * time.Hour)}},
		"nor is it where outages are not waited for":              {named(state.Outage{}, 0, 2*time.Hour), none, modelTry{at: at(2 * time.Hour), until: at(2 * time.Hour)}},
		"a time that is too far away":                             {named(state.Outage{}, 0, 25*time.Hour), limits, modelTry{end: waitPromiseLong}},
		"several times that are together":                         {named(promised(1), 20*time.Hour, 25*time.Hour), limits, modelTry{end: waitPromiseLong}},
		"a provider that did not keep to it":                      {named(promised(4), time.Hour, time.Hour+time.Second), limits, modelTry{at: at(time.Hour + 5*time.Minute), until: at(time.Hour + time.Second)}},
		"and is silent then":                                      {silent(promised(4), time.Hour), limits, modelTry{at: at(time.Hour + 5*time.Minute)}},
		"fallbacks are asked meanwhile":                           {both, limits, modelTry{at: at(30 * time.Second), until: at(2 * time.Hour)}},
		"also beyond the limit of an outage":                      {bothLate, limits, modelTry{at: at(time.Hour + 5*time.Minute), until: at(2 * time.Hour)}},
		"they are what is waited for if the time is too far away": {bothTooLong, limits, modelTry{at: at(30 * time.Second)}},
		"an outage that is not waited for":                        {silent(state.Outage{}, 0), none, modelTry{end: waitNotAllowed}},
		"but an overload is":                                      {busy(0), none, modelTry{at: at(90 * time.Second)}},
		"for longer each time":                                    {busy(4), none, modelTry{at: at(9 * time.Minute)}},
		"an answer that breaks off":                               {brokenOff(outage(9), 2), limits, modelTry{at: at(6 * time.Minute)}},
		"three times":                                             {brokenOff(outage(3), 3), limits, modelTry{end: waitNotAllowed}},
		"a key costs nothing to read":                             {unsentAt(10 * time.Minute), limits, modelTry{at: at(10*time.Minute + 30*time.Second)}},
		"and is there in two minutes":                             {unsentAt(100 * time.Second), none, modelTry{at: at(2 * time.Minute)}},
		"or is not coming":                                        {unsentAt(2 * time.Minute), none, modelTry{end: waitNotAllowed}},
		"a shorter limit leaves it the two minutes":               {unsentAt(time.Minute), modelWaitLimits{outage: time.Minute}, modelTry{at: at(90 * time.Second)}},
		"and no more":                                             {unsentAt(2 * time.Minute), modelWaitLimits{outage: time.Minute}, modelTry{end: waitTooLong}},
		"five times":                                              {busy(5), none, modelTry{end: waitNotAllowed}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, tc.failure.next(tc.limits), cmp.AllowUnexported(modelTry{})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// The errors of these tests, as fakeModel returns them.
var (
	away      = fails(&model.UnavailableError{Message: "connection refused"})
	loading   = fails(&model.UnavailableError{Status: 503, Message: "Loading model"})
	broken    = fails(&model.IncompleteError{})
	aborted   = fails(&model.BrokenOffError{Reason: "abort"})
	noKey     = fails(&model.NoCredentialError{Message: "no key"})
	exhausted = fails(&model.RateLimitedError{Message: "slow down"})
)

func limitedFor(d time.Duration) turn {
	return fails(&model.RateLimitedError{RetryAfter: d, Message: "slow down"})
}

// slowOutage is a model whose first four requests fail after 20 seconds. The answer to the
// next begins as late, and takes another 10.
type slowOutage struct{ asked *int }

func (s slowOutage) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		*s.asked++
		time.Sleep(20 * time.Second)
		if *s.asked <= 4 {
			yield(model.Delta{}, &model.UnavailableError{Message: "i/o timeout"})
			return
		}
		if yield(model.Delta{Text: "o"}, nil) {
			time.Sleep(10 * time.Second)
			yield(model.Delta{Text: "k", Finish: step.FinishStop}, nil)
		}
	}
}

// sleeps is what a tool does that takes a while.
func sleeps(d time.Duration) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) {
		time.Sleep(d)
		return tool.Result{}, nil
	}
}

func repeat(n int, t turn) []turn {
	turns := make([]turn, n)
	for i := range turns {
		turns[i] = t
	}
	return turns
}

// A Run that works, and whose model is away for a while, goes on where it was: nothing is
// made twice, and the time does not count.
func TestAnOutageIsWaitedOut(t *testing.T) {
	cases := map[string]struct {
		outage []turn
		took   time.Duration
	}{
		"of a server that restarts":             {[]turn{broken, away, loading}, 210 * time.Second},
		"of a server that is away for longer":   {repeat(8, away), 27*time.Minute + 30*time.Second},
		"of a provider that limits the rate":    {repeat(5, exhausted), 12*time.Minute + 30*time.Second},
		"of a provider that says for how long":  {[]turn{limitedFor(2 * time.Hour)}, 2 * time.Hour},
		"of one that says so several times":     {[]turn{limitedFor(time.Hour), away, limitedFor(time.Hour)}, 2*time.Hour + time.Minute},
		"of a fallback, which all Models need":  {[]turn{fails(&source.Error{Model: "b", Err: &model.UnavailableError{Status: 502}})}, 30 * time.Second},
		"that is not an error of a whole hour":  {[]turn{fails(&model.UnavailableError{Status: 503, RetryAfter: 61 * time.Minute})}, 61 * time.Minute},
		"that is a timeout of the server":       {[]turn{fails(&model.UnavailableError{Status: 408})}, 30 * time.Second},
		"whose promises are never kept, slower": {repeat(4, limitedFor(time.Second)), time.Second + time.Minute + 2*time.Minute + 4*time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				turns := append([]turn{calls(`Bash {"n":1}`), calls(`Bash {"n":2}`)}, tc.outage...)
				s := newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, append(turns, calls(`Bash {"n":3}`), says("ok"))...)
				s.Task.Limits.DurationSeconds, s.Task.Limits.ModelCalls = 20, 5
				began := time.Now()
				out := s.run(t)
				if took := time.Since(began); out.Reason != task.ReasonFinished || took != tc.took || out.Progress.Usage.DurationSeconds != 0 {
					t.Errorf("ended %s after %s, %d s of it counted: %s", out.Reason, took, out.Progress.Usage.DurationSeconds, out.Message)
				}
				if got, want := out.Progress.Counts.ModelCalls, int64(4+len(tc.outage)); got != want {
					t.Errorf("%d requests are counted, want %d", got, want)
				}
				want := "user: go\nassistant:  Bash{\"n\":1}\ntool: Bash{\"n\":1}\nassistant:  Bash{\"n\":2}\ntool: Bash{\"n\":2}\nassistant:  Bash{\"n\":3}\ntool: Bash{\"n\":3}\nassistant: ok"
				if diff := cmp.Diff(want, s.transcript(t)); diff != "" {
					t.Errorf("the session -want +got:\n%s", diff)
				}
				if out.Progress.State != "" || out.Progress.ModelWait != nil {
					t.Errorf("in the end the state is %q, the wait %+v", out.Progress.State, out.Progress.ModelWait)
				}
			})
		})
	}
}

// While one Model is rate limited for hours, its fallback is asked as in any outage.
func TestFallbacksAreAskedInAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited := &fakeModel{turns: []turn{limitedFor(2 * time.Hour)}}
		other := &fakeModel{turns: append(repeat(12, loading), says("ok"))}
		s := newTestRun(nil)
		s.Actor.Model.Model = router.New([]router.Target{{Name: "m", Model: limited}, {Name: "b", Model: other}}, nil)
		ten := int64(600)
		s.Task.Limits.ModelOutageSeconds = &ten // no bound while a provider named a time
		began := time.Now()
		end := s.running(t.Context())
		time.Sleep(2 * time.Minute)
		p := s.reporter.last()
		if w := p.ModelWait; p.State != approval.StateModel || w.Model != "b" || w.Promised || w.NextTryAt != began.Add(210*time.Second).UTC().Format(time.RFC3339) {
			t.Errorf("state %q, wait %+v", p.State, w)
		}
		out := end()
		if took := time.Since(began); out.Reason != task.ReasonFinished || out.Progress.Model != "b" || took != 47*time.Minute+30*time.Second {
			t.Errorf("ended %s after %s by Model %s: %s", out.Reason, took, out.Progress.Model, out.Message)
		}
		if len(limited.asked) != 1 {
			t.Errorf("the rate limited Model was asked %d times", len(limited.asked))
		}
	})
}

// A fallback whose window the session does not fit, however short it is made, does not end a
// Run whose own Model is only away for a while.
func TestAFallbackThatIsTooSmallIsNoReasonToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := &fakeModel{turns: append(repeat(2, away), says("ok"))}
		small := &fakeModel{turns: []turn{says("never")}}
		s := newTestRun(nil)
		s.Task.Prompt = strings.Repeat("word ", 4000)
		s.Actor.Model.Model = router.New([]router.Target{{Name: "m", Model: first}, {Name: "b", Model: small, Window: 1024, MaxOutput: 256}}, nil)
		s.Actor.Model.Next = s.Actor.Model.Model.(*router.Router).Next
		out := s.run(t)
		if out.Reason != task.ReasonFinished || out.Text != "ok" || out.Progress.Model != "m" {
			t.Errorf("ended %s (%q) by %s: %s", out.Reason, out.Text, out.Progress.Model, out.Message)
		}
	})
}

// What ends a wait, and what the end says.
func TestAWaitForAModelEnds(t *testing.T) {
	seconds := func(n int64) *int64 { return &n }
	fallback := fails(&source.Error{Model: "b", Err: &model.UnavailableError{Status: 503, Message: "busy."}})
	cases := map[string]struct {
		turns  []turn
		limits task.Limits
		took   time.Duration
		want   string
		wait   *task.ModelWait // without message
	}{
		"after limits.modelOutage": {
			repeat(99, away),
			task.Limits{},
			30 * time.Minute,
			"Model m was unavailable for 30m0s (limits.modelOutage), since 00:00:00 UTC: the model endpoint is unavailable: connection refused. Raise limits.modelOutage, add spec.fallbacks to Model m, or check its endpoint",
			&task.ModelWait{Model: "m", Since: "2000-01-01T00:00:00Z"},
		},
		"of a fallback": {
			repeat(99, fallback),
			task.Limits{ModelOutageSeconds: seconds(10)},
			10 * time.Second,
			"Model m was unavailable for 10s (limits.modelOutage), since 00:00:00 UTC: Model b: the model endpoint is unavailable (HTTP 503): busy. Raise limits.modelOutage, add spec.fallbacks to Model m, or check its endpoint",
			&task.ModelWait{Model: "b", Since: "2000-01-01T00:00:00Z"},
		},
		"on another day": {
			repeat(9999, loading),
			task.Limits{ModelOutageSeconds: seconds(48 * 3600)},
			48 * time.Hour,
			"Model m was unavailable for 48h0m0s (limits.modelOutage), since 2000-01-01T00:00:00Z: the model endpoint is unavailable (HTTP 503): Loading model. Raise limits.modelOutage, add spec.fallbacks to Model m, or check its endpoint",
			&task.ModelWait{Model: "m", Since: "2000-01-01T00:00:00Z"},
		},
		"what counts is the time since the last promise": {
			append([]turn{loading, limitedFor(2 * time.Hour)}, repeat(99, loading)...),
			task.Limits{ModelOutageSeconds: seconds(60)},
			2*time.Hour + 90*time.Second,
			"Model m was unavailable for 1m0s (limits.modelOutage), since 02:00:30 UTC: the model endpoint is unavailable (HTTP 503): Loading model. Raise limits.modelOutage, add spec.fallbacks to Model m, or check its endpoint",
			&task.ModelWait{Model: "m", Since: "2000-01-01T00:00:00Z"},
		},
		"at once if the provider asks for longer than limits.wait": {
			[]turn{limitedFor(2 * time.Hour)},
			task.Limits{WaitSeconds: 3600},
			0,
			"Model m is unavailable: its provider asks to wait until 2000-01-01T02:00:00Z, beyond limits.wait (1h0m0s): the model provider is rate limiting (retry after 2h0m0s): slow down. Raise limits.wait, add spec.fallbacks to Model m, or raise the limits at the provider",
			&task.ModelWait{Model: "m", Since: "2000-01-01T00:00:00Z", Promised: true},
		},
		"or asks again and again": {
			repeat(99, limitedFor(50*time.Minute)),
			task.Limits{WaitSeconds: 3600},
			50 * time.Minute,
			"Model m is unavailable: its provider asks to wait until 2000-01-01T01:40:00Z, beyond limits.wait (1h0m0s): the model provider is rate limiting (retry after 50m0s): slow down. Raise limits.wait, add spec.fallbacks to Model m, or raise the limits at the provider",
			&task.ModelWait{Model: "m", Since: "2000-01-01T00:00:00Z", Promised: true},
		},
		"at once if outages are not waited for": {
			[]turn{away},
			task.Limits{ModelOutageSeconds: seconds(0)},
			0,
			"Model m: the model endpoint is unavailable: connection refused; if this does not pass, check the Model's endpoint", nil,
		},
		"which wait for a key for two minutes": {
			repeat(99, noKey),
			task.Limits{ModelOutageSeconds: seconds(0)},
			2 * time.Minute,
			"Model m: the model's credential cannot be read: no key; set spec.apiKeySecretRef of Model m", nil,
		},
		"a short limit too": {
			repeat(99, noKey),
			task.Limits{ModelOutageSeconds: seconds(10)},
			2 * time.Minute,
			"Model m was unavailable for 2m0s, since 00:00:00 UTC: the model's credential cannot be read: no key. Raise limits.modelOutage, add spec.fallbacks to Model m, or check its endpoint",
			&task.ModelWait{Model: "m", Since: "2000-01-01T00:00:00Z"},
		},
		"which wait for an overload for a while": {
			repeat(99, exhausted),
			task.Limits{ModelOutageSeconds: seconds(0)},
			930 * time.Second,
			"Model m: the model provider is rate limiting: slow down; if this does not pass, check the Model's endpoint", nil,
		},
		"soon if the provider breaks off each answer": {
			repeat(99, aborted),
			task.Limits{},
			210 * time.Second,
			"Model m: the provider broke off the answer (finish reason abort); if this does not pass, check the Model's endpoint", nil,
		},
		"at once if the provider wants no other request": {
			[]turn{fails(&model.RateLimitedError{Final: true, RetryAfter: time.Minute, Message: "no quota"})},
			task.Limits{},
			0,
			"Model m: the model provider is rate limiting (retry after 1m0s): no quota; if this does not pass, check the Model's endpoint", nil,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newTestRun(nil, tc.turns...)
				tc.limits.Steps = 30
				s.Task.Limits = tc.limits
				began := time.Now()
				out := s.run(t)
				if took := time.Since(began); out.Reason != task.ReasonModelUnavailable || took != tc.took {
					t.Errorf("ended %s after %s", out.Reason, took)
				}
				if diff := cmp.Diff(tc.want, out.Message); diff != "" {
					t.Errorf("the message -want +got:\n%s", diff)
				}
				got := out.Progress.ModelWait
				if got != nil {
					got.Message = ""
				}
				if diff := cmp.Diff(tc.wait, got); diff != "" || out.Progress.State != "" {
					t.Errorf("state %q, the wait -want +got:\n%s", out.Progress.State, diff)
				}
			})
		})
	}
}

// The time in which a Run is paused is not part of the outage.
func TestAPauseEndsAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, append(repeat(3, away), says("ok"))...)
		ten := int64(600)
		s.Task.Limits.ModelOutageSeconds = &ten
		end := s.running(t.Context())
		time.Sleep(time.Minute)
		s.signals.pause(true)
		time.Sleep(time.Hour)
		if p := s.reporter.last(); p.State != approval.StatePaused || p.ModelWait != nil || len(s.model.asked) != 2 {
			t.Errorf("state %q, wait %+v, asked %d times", p.State, p.ModelWait, len(s.model.asked))
		}
		s.signals.pause(false)
		if out := end(); out.Reason != task.ReasonFinished {
			t.Errorf("ended %s: %s", out.Reason, out.Message)
		}
	})
}

// A session that works does not hide that another waits for its model, and the clock runs.
func TestOneSessionWaitsForItsModelWhileAnotherWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := newTool("Slow", tool.ReadOnly, sleeps(45*time.Second))
		s := delegating(fakeAgents{
			"b": fakeAgent("b", enginetest.Toolbox{slow}, calls("Slow {}"), says("b is done")),
			"c": fakeAgent("c", nil, away, away, says("c is done")),
		}, calls(`agent {"agent":"b"}`, `agent {"agent":"c"}`), says("ok"))
		s.Actor.Agent.ParallelTools = 2
		end := s.running(t.Context())
		time.Sleep(20 * time.Second)
		if p := s.reporter.last(); p.State != "" || p.ModelWait == nil || p.ModelWait.Model != "m-c" {
			t.Errorf("state %q, wait %+v", p.State, p.ModelWait)
		}
		time.Sleep(time.Minute)
		if p := s.reporter.last(); p.State != approval.StateModel {
			t.Errorf("state %q", p.State)
		}
		out := end()
		if out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds != 45 || out.Progress.ModelWait != nil {
			t.Errorf("ended %s after %d s, wait %+v: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Progress.ModelWait, out.Message)
		}
	})
}

// The tries of an outage take time themselves, which is not that of the work, unless an
// answer has begun.
func TestTriesOfAnOutageDoNotUseUpTheDuration(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil)
		s.Actor.Model.Model = slowOutage{new(int)}
		s.Task.Limits.DurationSeconds = 60
		out := s.run(t)
		// 20 s of the first try, and 10 s of the answer.
		if out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds != 30 {
			t.Errorf("ended %s after %d s: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Message)
		}
		if got := len(s.sink.of(step.EventStateChanged)); got != 5 {
			t.Errorf("%d events", got)
		}
	})
}

// An outage that goes on after an answer began: the answer was work, the wait after it is none,
// and none of the requests without an answer is counted for limits.modelCalls.
func TestAnOutageGoesOnAfterAnAnswerThatIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := model.Delta{Reset: true, Because: "connection refused"}
		rounds := []func(func(model.Delta, error) bool){
			func(yield func(model.Delta, error) bool) {
				yield(model.Delta{}, &model.UnavailableError{Message: "connection refused"})
			},
			func(yield func(model.Delta, error) bool) {
				yield(model.Delta{Text: "I"}, nil)
				time.Sleep(5 * time.Second)
				yield(model.Delta{}, &model.IncompleteError{})
			},
			func(yield func(model.Delta, error) bool) {
				for range 4 {
					yield(reset, nil)
				}
				yield(model.Delta{Call: &model.CallDelta{Name: "Read", Args: "{}"}, Finish: step.FinishCalls}, nil)
			},
			func(yield func(model.Delta, error) bool) {
				yield(model.Delta{Text: "ok", Finish: step.FinishStop}, nil)
			},
		}
		s := newTestRun(enginetest.Toolbox{echo("Read", tool.ReadOnly)})
		s.Actor.Model.Model = inRounds{rounds, new(int)}
		s.Task.Limits.ModelCalls = 2
		out := s.run(t)
		if out.Reason != task.ReasonFinished || out.Progress.Usage.DurationSeconds != 5 || out.Progress.Counts.ModelCalls != 8 {
			t.Errorf("ended %s after %d s and %d requests: %s", out.Reason, out.Progress.Usage.DurationSeconds, out.Progress.Counts.ModelCalls, out.Message)
		}
	})
}

// A server that was away, and is silent now, does not stop the clock for ever.
func TestASilentServerUsesUpTheDurationInAnOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTestRun(nil, away, turn{during: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }})
		s.Task.Limits.DurationSeconds = 60
		began := time.Now()
		out := s.run(t)
		if took := time.Since(began); out.Reason != task.ReasonDurationLimit || took != 30*time.Second+3*time.Minute+time.Minute {
			t.Errorf("ended %s after %s: %s", out.Reason, took, out.Message)
		}
	})
}

// inRounds is a model that answers each request with the next round.
type inRounds struct {
	rounds []func(func(model.Delta, error) bool)
	asked  *int
}

func (i inRounds) Stream(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
	*i.asked++
	return i.rounds[*i.asked-1]
}
