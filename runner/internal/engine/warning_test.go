package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// weather is a tool of a Toolset whose host is there only for calls with "ok".
func weather() tool.Tool {
	t := newTool("weather__get", tool.Once, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		if strings.Contains(string(c.Args), "ok") {
			return tool.Result{Text: "sunny"}, nil
		}
		if strings.Contains(string(c.Args), "bad") {
			return tool.Fail("HTTP 400"), nil
		}
		callreport.SetUnreachable(ctx, "lookup wether.example: no such host")
		return tool.Fail("wether.example cannot be reached"), nil
	})
	t.Internal = facts.Facts{Endpoint: facts.Endpoint{Name: "toolset weather", Field: "spec.requests.baseURL of Toolset weather"}}.Internal()
	return t
}

// Models go on without a tool that fails: a Run whose Toolset has a misspelled host
// finished and said nothing of it.
func TestARunSaysWhichEndpointsNoCallReached(t *testing.T) {
	const all = "Every call of toolset weather failed (%): lookup wether.example: no such host. Check spec.requests.baseURL of Toolset weather."
	cases := map[string]struct {
		turns []turn
		want  string
	}{
		"no call":                         {[]turn{says("ok")}, ""},
		"every call":                      {[]turn{calls(`weather__get {"n":1}`, `weather__get {"n":2}`), calls(`weather__get {"n":3}`), says("ok")}, strings.Replace(all, "%", "3 of 3", 1)},
		"all but one":                     {[]turn{calls(`weather__get {"n":1}`, `weather__get {"s":"ok"}`), says("ok")}, ""},
		"one that failed of other causes": {[]turn{calls(`weather__get {"n":1}`, `weather__get {"s":"bad"}`), says("ok")}, ""},
		"one that was not made":           {[]turn{calls(`weather__get {"n":1}`, `weather__get "x`), says("ok")}, strings.Replace(all, "%", "1 of 1", 1)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			out := newTestRun(enginetest.Toolbox{weather()}, tc.turns...).run(t)
			if out.Reason != task.ReasonFinished || out.Warning != tc.want {
				t.Errorf("ended %s, warning of %q, want %q", out.Reason, out.Warning, tc.want)
			}
		})
	}
}

// tired is a turn whose finish reason does not say that it is whole.
func tired(t turn) turn {
	t.finish, t.reason = step.FinishOther, "tired"
	return t
}

func TestARunSaysWhichAnswersMayNotBeWhole(t *testing.T) {
	const one = `1 answer of Model m ended with the finish reason "tired", which does not say that an answer is whole. Check the result.`
	cases := map[string]struct {
		turns []turn
		want  string
	}{
		"no answer":        {[]turn{calls(`weather__get {"s":"ok"}`), says("ok")}, ""},
		"the last answer":  {[]turn{calls(`weather__get {"s":"ok"}`), tired(says("ok"))}, one},
		"one before it":    {[]turn{tired(calls(`weather__get {"s":"ok"}`)), says("ok")}, one},
		"both of them":     {[]turn{tired(calls(`weather__get {"s":"ok"}`)), tired(says("ok"))}, strings.Replace(one, "1 answer", "2 answers", 1)},
		"beside a toolset": {[]turn{calls(`weather__get {"n":1}`), tired(says("ok"))}, one + " Every call of toolset weather failed (1 of 1): lookup wether.example: no such host. Check spec.requests.baseURL of Toolset weather."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newTestRun(enginetest.Toolbox{weather()}, tc.turns...)
			out := s.run(t)
			if out.Reason != task.ReasonFinished || out.Warning != tc.want {
				t.Errorf("ended %s, warning of %q, want %q", out.Reason, out.Warning, tc.want)
			}
			warned := 0
			for _, e := range s.sink.all {
				if w, ok := e.(events.Warning); ok && w.Text == one {
					warned++
				}
			}
			unclear := 0
			for _, turn := range tc.turns {
				unclear += len(turn.reason) / len("tired")
			}
			if warned != unclear {
				t.Errorf("%d events warn of %d answers", warned, unclear)
			}
		})
	}
}

// What requests lack is an event and in the result, each once.
func TestARunSaysWhatItsRequestsLack(t *testing.T) {
	first, last := calls(`weather__get {"s":"ok"}`), tired(says("ok"))
	first.lacks, last.lacks = "2 of 12 images are not sent", "2 of 12 images are not sent"
	s := newTestRun(enginetest.Toolbox{weather()}, first, last)
	out := s.run(t)
	if want := "2 of 12 images are not sent. 1 answer of Model m ended"; !strings.HasPrefix(out.Warning, want) {
		t.Errorf("ended %s, warning of %q, want %q", out.Reason, out.Warning, want)
	}
	warned := 0
	for _, e := range s.sink.all {
		if w, ok := e.(events.Warning); ok && w.Text == first.lacks && w.Step == 2 {
			warned++
		}
	}
	if warned != 1 {
		t.Errorf("%d events, want 1", warned)
	}
}

// The warning is still there after another attempt took up the session.
func TestAnUnclearAnswerOfAnEarlierAttemptIsInTheWarning(t *testing.T) {
	first := newTestRun(nil, tired(calls(`weather__get {"s":"ok"}`)))
	last := newTool("weather__get", tool.Once, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		first.sigterm()
		return weather().Call(ctx, c)
	})
	first.Actor.Tools = enginetest.Toolbox{last}
	first.run(t)
	if out := first.again(enginetest.Toolbox{weather()}, says("ok")).run(t); !strings.Contains(out.Warning, `"tired"`) {
		t.Errorf("ended %s, warning of %q", out.Reason, out.Warning)
	}
}

func TestAWarningOfManyReasonsIsShort(t *testing.T) {
	var all []state.UnclearAnswers
	for _, reason := range []string{"a", "b", "c", "d", "e"} {
		all = append(all, state.UnclearAnswers{Model: "m", Reason: reason, Count: 1})
	}
	if got := unclearWarning(all); strings.Count(got, "Check the result") != 3 || !strings.HasSuffix(got, "The same holds for 2 other reasons.") {
		t.Errorf("unclearWarning() = %q", got)
	}
}

// An optional Toolset that could not be reached has no tools, so no call of it fails.
func TestARunSaysWhichOptionalEndpointsWereNotThere(t *testing.T) {
	s := newTestRun(nil, says("ok"))
	s.Unavailable = []journal.Remote{{Name: "toolset harbor", Field: "spec.http.url of Toolset harbor", Unreachable: "lookup harbor: no such host"}}
	want := "The optional toolset harbor was not available: lookup harbor: no such host. Check spec.http.url of Toolset harbor."
	if out := s.run(t); out.Reason != task.ReasonFinished || out.Warning != want {
		t.Errorf("ended %s, warning of %q, want %q", out.Reason, out.Warning, want)
	}
}

// Calls of earlier attempts count, by the journal.
func TestCallsOfEarlierAttemptsCountForAWarning(t *testing.T) {
	for reached, want := range map[string]string{`{"n":1}`: "failed (2 of 2)", `{"s":"ok"}`: ""} {
		first := newTestRun(nil, calls("weather__get "+reached))
		last := newTool("weather__get", tool.Once, func(ctx context.Context, c tool.Call) (tool.Result, error) {
			first.sigterm()
			return weather().Call(ctx, c)
		})
		last.Spec = weather().Spec
		first.Actor.Tools = enginetest.Toolbox{last}
		if out := first.run(t); out.Reason != task.ReasonInterrupted || out.Warning != "" {
			t.Fatalf("ended %s, warning of %q", out.Reason, out.Warning)
		}
		again := first.again(enginetest.Toolbox{weather()}, calls(`weather__get {"n":2}`), says("ok"))
		out := again.run(t)
		if out.Reason != task.ReasonFinished || (out.Warning == "") != (want == "") || !strings.Contains(out.Warning, want) {
			t.Errorf("after %s it ended %s, warning of %q", reached, out.Reason, out.Warning)
		}
	}
}

func TestAWarningNamesHooksThatAlwaysFail(t *testing.T) {
	s := layered(t, newTestRun(enginetest.Toolbox{echo("Bash", tool.Once)}, calls(`Bash {"n":1}`), says("ok")), middleware.Layer{
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				callreport.AddHook(ctx, step.Hook{Name: "guard", Point: "BeforeTool", Did: step.HookFailed, Reason: "dial 10.0.0.1:80: connection refused"})
				callreport.AddHook(ctx, step.Hook{Name: "log", Did: step.HookAllowed})
				return next(ctx, c)
			}
		},
	})
	s.Actor.Agent.Name = "fixer"
	if out := s.run(t); out.Warning != "Every call of hook guard failed (1 of 1): dial 10.0.0.1:80: connection refused. Check its url in spec.hooks of Agent fixer." {
		t.Errorf("the warning is %q", out.Warning)
	}
}

func TestAWarningHasNoSecretsAndIsShort(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{weather()}, calls(`weather__get {"n":1}`), says("ok"))
	s.Redact = redact.New(redact.Secret{Name: "host", Key: "k", Value: []byte("wether.example")})
	if out := s.run(t); strings.Contains(out.Warning, "wether.example") || !strings.Contains(out.Warning, "Every call of toolset weather") {
		t.Errorf("the warning is %q", out.Warning)
	}
	var many []state.RemoteCalls
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		many = append(many, state.RemoteCalls{Remote: journal.Remote{Name: name, Field: "x", Unreachable: "why."}, Made: 1, Failed: 1})
	}
	want := "Every call of a failed (1 of 1): why. Check x. Every call of b failed (1 of 1): why. Check x. Every call of c failed (1 of 1): why. Check x. The same happened with 2 more."
	if got := warningOf(nil, many); got != want {
		t.Errorf("warningOf() = %q", got)
	}
}
