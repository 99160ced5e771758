package engine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// byTarget is a Policy that decides by what the arguments name.
type byTarget map[string]toolcall.PolicyResult

func (b byTarget) Decide(_ context.Context, c step.Call, _ step.Scope) toolcall.PolicyResult {
	for target, v := range b {
		if strings.Contains(string(c.Args), target) {
			return v
		}
	}
	return toolcall.PolicyResult{Answer: toolcall.Allow}
}

// The target of a redirect, which nobody knew when the call was allowed, is
// judged by the policy of the agent that calls and of those above it.
func TestAuthorizeHasThePolicyJudgeOtherArguments(t *testing.T) {
	policy := byTarget{
		"denied": {Answer: toolcall.Deny, Rule: "no-b", Reason: "it is theirs"}, "asked": {Answer: toolcall.Ask, Rule: "ask-c"}, "unknown": {},
	}
	cases := map[string]struct {
		policy toolcall.Policy
		target string
		want   string
	}{
		"no policy allows":        {nil, "denied", "followed"},
		"what no rule is for":     {policy, "other", "followed"},
		"what a rule denies":      {policy, "denied", "Error: Denied by policy rule no-b: it is theirs\n- " + toolcall.AdviceDenied},
		"what a rule asks about":  {policy, "asked", "Error: " + toolcall.ResultUnapproved + "\n- " + toolcall.AdviceUnapproved},
		"an answer that is none":  {policy, "unknown", "Error: " + toolcall.ResultUnapproved + "\n- " + toolcall.AdviceUnapproved},
		"what the first call was": {policy, "first", "followed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			follows := newTool("Get", tool.ReadOnly, func(ctx context.Context, c tool.Call) (tool.Result, error) {
				if refused := c.Session.Authorize(ctx, json.RawMessage(`{"url":"`+tc.target+`"}`)); refused != nil {
					return tool.Result{Error: refused}, nil
				}
				return tool.Result{Text: "followed"}, nil
			})
			s := newTestRun(enginetest.Toolbox{follows}, calls(`Get {"url":"first"}`), says("ok"))
			s.Actor.Policy = tc.policy
			s.run(t)
			if got := s.steps(t)[2].Text(); got != tc.want {
				t.Errorf("the model reads %q, want %q", got, tc.want)
			}
		})
	}
}
