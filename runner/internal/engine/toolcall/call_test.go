package toolcall_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// traced has layers, policy and tool of a session report when they are reached.
func traced(t *testing.T, effect tool.Effect, answer toolcall.Answer) *fakeSession {
	t.Helper()
	var s *fakeSession
	s = newSession(t, []tool.Tool{doing(newTool("Write", effect), func(context.Context, tool.Call) (tool.Result, error) {
		s.happened("tool")
		return tool.Result{Text: "done"}, nil
	})}, `Write {}`)
	s.options.Policy = fakePolicy(func(step.Call) toolcall.PolicyResult {
		s.happened("policy")
		return toolcall.PolicyResult{Answer: answer}
	})
	s.options.Stack = layer(t, func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			s.happened("layer before")
			defer s.happened("layer after")
			return next(ctx, c)
		}
	})
	return s
}

func TestOrderOfACall(t *testing.T) {
	cases := map[string]struct {
		effect tool.Effect
		answer toolcall.Answer
		want   string
	}{
		"a call with side effects": {
			tool.Once, toolcall.Allow,
			"safe point, layer before, policy, safe point, effects, record intent, started, tool, layer after, record result, finished",
		},
		"a call that only reads does not report effects": {
			tool.ReadOnly, toolcall.Allow,
			"safe point, layer before, policy, safe point, record intent, started, tool, layer after, record result, finished",
		},
		"a call that is denied has no intent and does not reach the tool": {
			tool.Once, toolcall.Deny,
			"safe point, layer before, policy, layer after, record result, denied Write by Policy , finished",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := traced(t, tc.effect, tc.answer)
			if err := s.execute(t.Context()); err != nil {
				t.Fatalf("Execute: %v", err)
			}
			if diff := cmp.Diff(strings.Split(tc.want, ", "), s.events); diff != "" {
				t.Errorf("order -want +got:\n%s", diff)
			}
		})
	}
}

func TestResultOfACall(t *testing.T) {
	ends := func(r tool.Result, err error) func(context.Context, tool.Call) (tool.Result, error) {
		return func(context.Context, tool.Call) (tool.Result, error) { return r, err }
	}
	cases := map[string]struct {
		call   func(context.Context, tool.Call) (tool.Result, error)
		change func(*testing.T, *fakeSession)
		want   string
	}{
		"a text":                     {call: ends(tool.Result{Text: "three lines"}, nil), want: "three lines"},
		"no text":                    {call: ends(tool.Result{}, nil), want: toolcall.ResultEmpty},
		"an error of the tool":       {call: ends(tool.Result{}, errors.New("no such file")), want: "Error: no such file"},
		"an error without a message": {call: ends(tool.Result{}, errors.New("")), want: "Error: " + toolcall.ResultNoMessage},
		"a failure with advice":      {call: ends(tool.Fail("too long", "shorten it"), nil), want: "Error: too long\n- shorten it"},
		"a panic in the tool":        {call: func(context.Context, tool.Call) (tool.Result, error) { panic("index out of range") }, want: "Error: the tool crashed: index out of range"},
		"a result that is too large": {call: ends(tool.Result{Text: strings.Repeat("x", toolcall.MaxResult+1)}, nil), want: task.Cut(strings.Repeat("x", toolcall.MaxResult+1), toolcall.MaxResult) + "\n… (cut: 262145 bytes in all; ask for less)"},
		"a result that is offloaded": {call: ends(tool.Result{Text: "large"}, nil), change: func(t *testing.T, s *fakeSession) {
			s.config.Offload = func(_ context.Context, _ step.Call, text string) string { return text + " is in a file" }
		}, want: "large is in a file"},
		"the Run was asked to stop": {change: func(t *testing.T, s *fakeSession) {
			s.Signals.Update(func(now *signals.Signals) { now.Stopped = true })
		}, want: "Error: " + toolcall.ResultStopped},
		"an error of the stopped Run": {call: ends(tool.Result{}, signals.ErrStopped), want: "Error: " + toolcall.ResultStopped},
		"a veto of a layer": {
			change: func(t *testing.T, s *fakeSession) {
				s.options.Stack = layer(t, func(middleware.ToolFunc) middleware.ToolFunc {
					return func(context.Context, *tool.Call) (tool.Result, error) {
						return tool.Result{}, &middleware.VetoError{By: "audit", Reason: "not today"}
					}
				})
			},
			want: "Error: Not executed: " + (&middleware.VetoError{By: "audit", Reason: "not today"}).Error(),
		},
		"arguments that a layer changed and that do not fit": {
			change: func(t *testing.T, s *fakeSession) {
				s.options.Stack = layer(t, func(next middleware.ToolFunc) middleware.ToolFunc {
					return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
						c.Args = json.RawMessage(`[]`)
						return next(ctx, c)
					}
				})
			},
			want: "Error: the arguments are not valid JSON",
		},
		"no call is left of limits.toolCalls": {
			change: func(t *testing.T, s *fakeSession) {
				s.account = s.account.Open(task.Limits{ToolCalls: 1}, step.Meter{ToolCalls: 1})
			},
			want: "Error: " + toolcall.ResultTooMany,
		},
		"denied by a rule": {
			change: func(t *testing.T, s *fakeSession) {
				s.options.Policy = fakePolicy(func(step.Call) toolcall.PolicyResult {
					return toolcall.PolicyResult{Answer: toolcall.Deny, Rule: "no-writes", Reason: "it is Friday"}
				})
			},
			want: "Error: Denied by policy rule no-writes: it is Friday\n- " + toolcall.AdviceDenied,
		},
		"an approval is needed and there are no approvers": {
			change: func(t *testing.T, s *fakeSession) {
				s.setApprovers(false)
				s.options.Policy = fakePolicy(func(step.Call) toolcall.PolicyResult { return toolcall.PolicyResult{Answer: toolcall.Ask} })
			},
			want: "Error: " + toolcall.ResultNoApprovers + "\n- " + toolcall.AdviceDenied,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			write := newTool("Write", tool.Once)
			if tc.call != nil {
				write = doing(write, tc.call)
			}
			s := newSession(t, []tool.Tool{write}, `Write {}`)
			if tc.change != nil {
				tc.change(t, s)
			}
			if err := s.execute(t.Context()); err != nil {
				t.Fatalf("Execute: %v", err)
			}
			if diff := cmp.Diff([]string{"s2c1: " + tc.want}, s.results()); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
		})
	}
}

func TestCallsThatAreNotExecuted(t *testing.T) {
	cases := map[string]struct {
		finish step.Finish
		call   string
		want   string
	}{
		"the answer was cut":              {step.FinishLength, `Write {}`, toolcall.ResultCut},
		"the model declined":              {step.FinishRefusal, `Write {}`, toolcall.ResultRefused},
		"a tool that there is not":        {step.FinishCalls, `Wirte {}`, "Unknown tool name: 'Wirte'. Available tools: Write"},
		"arguments that the tool refuses": {step.FinishCalls, `Write []`, "the arguments are not valid JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, []tool.Tool{doing(newTool("Write", tool.Once), func(context.Context, tool.Call) (tool.Result, error) {
				t.Error("the tool is called")
				return tool.Result{}, nil
			})})
			if err := s.AddTurn(tc.finish, tc.call); err != nil {
				t.Fatal(err)
			}
			if err := s.execute(t.Context()); err != nil {
				t.Fatalf("Execute: %v", err)
			}
			if diff := cmp.Diff([]string{"s4c1: Error: " + tc.want}, s.results()); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
		})
	}
}

// Execute fails and leaves the call open for the next attempt.
func TestCallsThatEndTheRun(t *testing.T) {
	full := errors.New("the disk is full")
	cases := map[string]struct {
		call   func(context.Context, tool.Call) (tool.Result, error)
		change func(*testing.T, *fakeSession)
		want   string
	}{
		"an intent that is not recorded": {
			change: func(t *testing.T, s *fakeSession) { s.Refuse = map[journal.Kind]error{journal.KindIntent: full} },
			want:   "recording call s2c1: the disk is full",
		},
		"a result that is not recorded": {
			change: func(t *testing.T, s *fakeSession) { s.Refuse = map[journal.Kind]error{journal.KindResult: full} },
			want:   "recording the result of call s2c1: the disk is full",
		},
		"a session below that fails, whatever the tool makes of it": {
			call: func(ctx context.Context, c tool.Call) (tool.Result, error) {
				_, _ = c.Session.Delegate(ctx, tool.Delegation{Agent: "child"})
				return tool.Result{}, errors.New("the agent did not answer")
			},
			want: "calling Write: the session of the agent failed",
		},
		"a layer that changes the id of a call": {
			change: func(t *testing.T, s *fakeSession) {
				s.options.Stack = layer(t, func(next middleware.ToolFunc) middleware.ToolFunc {
					return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
						c.ID = "s2c9"
						return next(ctx, c)
					}
				})
			},
			want: `a layer changed the id of a call to "s2c9"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			write := newTool("Write", tool.Once)
			if tc.call != nil {
				write = doing(write, tc.call)
			}
			s := newSession(t, []tool.Tool{write}, `Write {}`)
			if tc.change != nil {
				tc.change(t, s)
			}
			err := s.execute(t.Context())
			if err == nil || err.Error() != tc.want {
				t.Errorf("Execute: error %v, want %s", err, tc.want)
			}
			if got := s.results(); len(got) > 0 {
				t.Errorf("the call has the result %q", got)
			}
		})
	}
}

// The call ends with a fatal error, so the next attempt does not make it again, whatever
// its effect.
func TestAFatalErrorIsTheResultOfTheCall(t *testing.T) {
	for _, effect := range []tool.Effect{tool.ReadOnly, tool.Idempotent, tool.Resumable, tool.Once} {
		t.Run(string(effect), func(t *testing.T) {
			s := newSession(t, []tool.Tool{doing(newTool("Write", effect), func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{}, fmt.Errorf("writing: %w", tool.Fatal(errors.New("the sandbox is gone")))
			})}, `Write {}`)
			const want = "calling Write: writing: the sandbox is gone"
			if err := s.execute(t.Context()); err == nil || err.Error() != want {
				t.Errorf("Execute: error %v, want %s", err, want)
			}
			if diff := cmp.Diff([]string{"s2c1: Error: writing: the sandbox is gone"}, s.results()); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
		})
	}
}

// A layer swallows the error of a call that must end the Run.
func TestALayerCannotHideAFatalError(t *testing.T) {
	s := newSession(t, []tool.Tool{doing(newTool("Write", tool.Once), func(context.Context, tool.Call) (tool.Result, error) {
		return tool.Result{}, tool.Fatal(errors.New("the sandbox is gone"))
	})}, `Write {}`)
	s.options.Stack = layer(t, func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			_, _ = next(ctx, c)
			return tool.Result{Text: "all is well"}, nil
		}
	})
	if err := s.execute(t.Context()); err == nil {
		t.Error("Execute returns no error")
	}
	if diff := cmp.Diff([]string{"s2c1: Error: the sandbox is gone"}, s.results()); diff != "" {
		t.Errorf("results -want +got:\n%s", diff)
	}
}

func TestTimeout(t *testing.T) {
	cases := map[string]struct {
		timeout time.Duration
		hangs   bool // the tool does not return when its context ends
		limit   time.Duration
		after   time.Duration
	}{
		"of the tool":                    {timeout: 3 * time.Second, limit: 3 * time.Second, after: 3 * time.Second},
		"by default":                     {limit: toolcall.DefaultTimeout, after: toolcall.DefaultTimeout},
		"of a tool that does not return": {timeout: time.Second, hangs: true, limit: time.Second, after: time.Second + toolcall.CancelTimeout},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				end := make(chan struct{})
				defer close(end)
				bash := newTool("Bash", tool.Once, func(s *tool.Spec) { s.Timeout = tc.timeout })
				s := newSession(t, []tool.Tool{doing(bash, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
					if tc.hangs {
						<-end
					}
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				})}, `Bash {}`)
				began := time.Now()
				if err := s.execute(t.Context()); err != nil {
					t.Fatalf("Execute: %v", err)
				}
				if diff := cmp.Diff([]string{"s2c1: Error: " + toolcall.ResultTimeout(tc.limit)}, s.results()); diff != "" {
					t.Errorf("results -want +got:\n%s", diff)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("the result comes after %s, want %s", took, tc.after)
				}
			})
		})
	}
}

// The context of the attempt ends while a call runs.
func TestInterruptedCall(t *testing.T) {
	cases := map[string]struct {
		effect tool.Effect
		cause  error
		want   []string // nil: it is left open
	}{
		"by the shutdown of the pod":                   {tool.Once, signals.ErrInterrupted, []string{"s2c1: Error: " + toolcall.ResultShutdown + "\nIts output until then:\nhalf"}},
		"by the shutdown, and it can be resumed":       {tool.Resumable, signals.ErrInterrupted, nil},
		"by limits.duration":                           {tool.Once, task.End(task.ReasonDurationLimit, "Used 1h of 1h"), []string{"s2c1: Error: Interrupted: Used 1h of 1h"}},
		"because another attempt has taken over":       {tool.Once, task.End(task.ReasonFenced, "taken over"), nil},
		"because something else of the Run has failed": {tool.Once, errors.New("the disk is full"), nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			s := newSession(t, []tool.Tool{doing(newTool("Bash", tc.effect), func(ctx context.Context, _ tool.Call) (tool.Result, error) {
				cancel(tc.cause)
				<-ctx.Done()
				return tool.Result{}, ctx.Err()
			})}, `Bash {}`)
			s.config.Captured = func(string) string { return "half\n" }
			_ = s.execute(ctx)
			if diff := cmp.Diff(tc.want, s.results()); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
		})
	}
}

// Nothing begins once the pod is shut down: no intent, no result.
func TestNothingBeginsWhenTheRunnerLeaves(t *testing.T) {
	s := traced(t, tool.Once, toolcall.Allow)
	s.Signals.Update(func(now *signals.Signals) { now.Interrupted = true })
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	if diff := cmp.Diff([]string{"safe point"}, s.events); diff != "" {
		t.Errorf("order -want +got:\n%s", diff)
	}
}

func TestAnOutputThatIsTooLargeDoesNotEndTheSession(t *testing.T) {
	large := json.RawMessage(`"` + strings.Repeat("x", task.MaxOutput) + `"`)
	for name, tc := range map[string]struct {
		output json.RawMessage
		ends   bool
	}{
		"an output that fits": {json.RawMessage(`{"ok":true}`), true},
		"a large one":         {large, false},
	} {
		t.Run(name, func(t *testing.T) {
			finish := doing(newTool("Finish", tool.ReadOnly, enginetest.Ends),
				func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{Output: tc.output}, nil })
			s := newSession(t, []tool.Tool{finish}, `Finish {}`)
			if err := s.execute(t.Context()); err != nil {
				t.Fatalf("Execute: %v", err)
			}
			if got := s.Store.Session("").Ending != nil; got != tc.ends {
				t.Errorf("the session ends: %v, want %v", got, tc.ends)
			}
		})
	}
}

// A call that another attempt, or the next one, can make is not refused because the runner
// noticed that it has to end just before the call began: a result would stay in the journal.
func TestACallThatIsAboutToBeginWhenTheAttemptEnds(t *testing.T) {
	cases := map[string]struct {
		cause error
		want  []string // results
	}{
		"because another attempt took over":   {task.End(task.ReasonFenced, "replaced"), nil},
		"because the pod is shut down":        {signals.ErrInterrupted, nil},
		"because the runner fails":            {errors.New("the API server refuses all reports"), nil},
		"because limits.duration was reached": {task.End(task.ReasonDurationLimit, "Used 1h of 1h"), []string{"s2c1: Error: " + toolcall.ResultLimit}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			made := 0
			write := doing(newTool("Write", tool.Once), func(context.Context, tool.Call) (tool.Result, error) {
				made++
				return tool.Result{Text: "done"}, nil
			})
			write.Canonicalize = func(_ context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
				cancel(tc.cause)
				return args, nil
			}
			s := newSession(t, []tool.Tool{write}, `Write {}`)
			_ = s.execute(ctx) // its error is the cause, which is not tested here
			if diff := cmp.Diff(tc.want, s.results()); diff != "" || made > 0 {
				t.Errorf("made %d times; results -want +got:\n%s", made, diff)
			}
		})
	}
}
