package toolcall_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// asks is the policy of an agent one rule of which asks.
func asks(rule string, groups ...string) fakePolicy {
	return func(step.Call) toolcall.PolicyResult {
		return toolcall.PolicyResult{Answer: toolcall.Ask, Rule: rule, Approvers: task.Approvers{Groups: groups}}
	}
}

func TestApprovalOfACall(t *testing.T) {
	sum := digest.Call("Bash", json.RawMessage(`{}`))
	request := approval.RequestID("s2c1", 0, sum)
	cases := map[string]struct {
		decisions []task.Decision
		stop      bool
		want      string
	}{
		"approved":                     {[]task.Decision{{Name: "d", Request: request, Type: task.DecisionApprove, Digest: sum}}, false, "Bash done"},
		"denied with a reason":         {[]task.Decision{{Name: "d", By: "ann", Request: request, Type: task.DecisionDeny, Reason: "use the API"}}, false, "Error: Denied by ann: use the API\n- " + toolcall.AdviceDenied},
		"denied by a user not named":   {[]task.Decision{{Name: "d", Request: request, Type: task.DecisionDeny}}, false, "Error: Denied by a person.\n- " + toolcall.AdviceDenied},
		"approved for another call":    {[]task.Decision{{Name: "d", Request: request, Type: task.DecisionApprove, Digest: "sha256:other"}}, false, "Error: " + toolcall.ResultUndecided + "\n- " + toolcall.AdviceDenied},
		"not decided in time":          {nil, false, "Error: " + toolcall.ResultUndecided + "\n- " + toolcall.AdviceDenied},
		"the Run is stopped meanwhile": {nil, true, "Error: " + toolcall.ResultStopped},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t, []tool.Tool{newTool("Bash", tool.Once)}, `Bash {}`)
				s.options.Policy = asks("commands")
				go func() {
					synctest.Wait() // the call waits
					for _, d := range tc.decisions {
						s.Decide(d)
					}
					if tc.stop {
						s.Signals.Update(func(now *signals.Signals) { now.Stopped = true })
					}
				}()
				if err := s.execute(t.Context()); err != nil {
					t.Fatalf("Execute: %v", err)
				}
				if diff := cmp.Diff([]string{"s2c1: " + tc.want}, s.results()); diff != "" {
					t.Errorf("results -want +got:\n%s", diff)
				}
			})
		})
	}
}

// How long a call took does not contain the wait for its approval.
func TestDurationOfACallThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, []tool.Tool{doing(newTool("Bash", tool.Once), func(context.Context, tool.Call) (tool.Result, error) {
			time.Sleep(time.Second)
			return tool.Result{Text: "done"}, nil
		})}, `Bash {}`)
		s.options.Policy = asks("commands")
		sum := digest.Call("Bash", json.RawMessage(`{}`))
		go func() {
			time.Sleep(20 * time.Second)
			s.Decide(task.Decision{Name: "d", Request: approval.RequestID("s2c1", 0, sum), Type: task.DecisionApprove, Digest: sum})
		}()
		start := time.Now()
		if err := s.execute(t.Context()); err != nil {
			t.Fatalf("Execute: %v", err)
		}
		steps := s.Store.Session("").Steps
		if last := steps[len(steps)-1]; last.Duration != time.Second || last.At.Sub(start) != 20*time.Second {
			t.Errorf("the call began after %s and took %s", last.At.Sub(start), last.Duration)
		}
	})
}

// The status of a Run has the calls that were denied, and by what.
func TestWhatDeniedACallIsShown(t *testing.T) {
	denies := func(step.Call) toolcall.PolicyResult {
		return toolcall.PolicyResult{Answer: toolcall.Deny, Rule: "no-bash"}
	}
	cases := map[string]struct {
		policy   fakePolicy
		decision string
		want     []string
	}{
		"a rule":              {denies, "", []string{"denied Bash by Policy no-bash"}},
		"a user":              {asks("commands"), task.DecisionDeny, []string{"denied Bash by Approver commands"}},
		"no decision":         {asks("commands"), "", []string{"denied Bash by Timeout commands"}},
		"nothing: it is made": {asks("commands"), task.DecisionApprove, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				if diff := cmp.Diff(tc.want, denials(t, tc.policy, tc.decision)); diff != "" {
					t.Errorf("denied -want +got:\n%s", diff)
				}
			})
		})
	}
}

// denials makes a call, decides on it if decision is not empty, and returns what was shown as
// denied.
func denials(t *testing.T, policy fakePolicy, decision string) []string {
	t.Helper()
	sum := digest.Call("Bash", json.RawMessage(`{}`))
	s := newSession(t, []tool.Tool{newTool("Bash", tool.Once)}, `Bash {}`)
	s.options.Policy = policy
	go func() {
		synctest.Wait() // the call waits
		if decision != "" {
			s.Decide(task.Decision{Name: "d", By: "ann", Request: approval.RequestID("s2c1", 0, sum), Type: decision, Digest: sum})
		}
	}()
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	var shown []string
	for _, what := range s.events {
		if strings.HasPrefix(what, "denied ") {
			shown = append(shown, what)
		}
	}
	return shown
}

// What was approved for the rest of the Run does not ask again for calls of the same
// rule; a rule that asks about each call always does.
func TestApprovalForTheRestOfTheRun(t *testing.T) {
	for name, tc := range map[string]struct {
		once bool
		want toolcall.Answer
	}{
		"of a rule":                           {false, toolcall.Allow},
		"of a rule that asks about each call": {true, toolcall.Ask},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, []tool.Tool{newTool("Bash", tool.Once)}, `Bash {}`)
			s.options.Policy = fakePolicy(func(step.Call) toolcall.PolicyResult {
				return toolcall.PolicyResult{Answer: toolcall.Ask, Rule: "commands", Once: tc.once}
			})
			err := s.Record(journal.Record{Kind: journal.KindDecide, Decision: &journal.Decision{
				Name: "d", Request: "r", Type: task.DecisionApprove, Scope: task.ScopeRun,
				Source: journal.Source{Agent: "scout", Rule: "commands", Tool: "Bash"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if got := s.runner().Allows(t.Context(), "Bash", json.RawMessage(`{}`)); got != (tc.want == toolcall.Allow) {
				t.Errorf("Allows is %v, want the policy to %s", got, tc.want)
			}
			if s.runner().Allows(t.Context(), "Other", json.RawMessage(`{}`)) {
				t.Error("another tool is allowed too")
			}
		})
	}
}

// The policies of all agents above judge a call too; the strictest answer counts.
func TestPoliciesOfAgentsAbove(t *testing.T) {
	answer := func(a toolcall.Answer) fakePolicy {
		return func(step.Call) toolcall.PolicyResult { return toolcall.PolicyResult{Answer: a} }
	}
	cases := map[string]struct {
		above, own toolcall.Policy
		want       bool
	}{
		"no policy":                 {nil, nil, true},
		"both allow":                {answer(toolcall.Allow), answer(toolcall.Allow), true},
		"only the one above denies": {answer(toolcall.Deny), answer(toolcall.Allow), false},
		"only its own denies":       {answer(toolcall.Allow), answer(toolcall.Deny), false},
		"only the one above asks":   {answer(toolcall.Ask), nil, false},
		"an unknown answer asks":    {nil, answer("Maybe"), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, []tool.Tool{newTool("Bash", tool.Once)}, `Bash {}`)
			s.options.Policy = tc.above
			above := s.runner()
			s.options.Policy, s.options.Parent = tc.own, above
			if got := s.runner().Allows(t.Context(), "Bash", json.RawMessage(`{}`)); got != tc.want {
				t.Errorf("Allows is %v, want %v", got, tc.want)
			}
		})
	}
}
