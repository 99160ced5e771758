package toolcall_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// An earlier runner recorded a call as begun and was lost. The next one settles it, or
// makes it again.
func TestResumeOfACallThatWasBegun(t *testing.T) {
	lost := "s2c1: Error: " + toolcall.ResultLost
	cases := map[string]struct {
		effect tool.Effect
		want   string
		calls  int
	}{
		"it only reads":             {tool.ReadOnly, "s2c1: T done", 1},
		"it may be repeated":        {tool.Idempotent, "s2c1: T done", 1},
		"it can be resumed":         {tool.Resumable, "s2c1: T done", 1},
		"it has side effects":       {tool.Once, lost, 0},
		"its effects are not known": {"", lost, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			calls := 0
			s := newSession(t, []tool.Tool{doing(newTool("T", tc.effect), func(context.Context, tool.Call) (tool.Result, error) {
				calls++
				return tool.Result{Text: "T done"}, nil
			})}, `T {}`)
			s.begin(t, "s2c1", "T", `{}`, tc.effect)
			if err := s.runner().SettleLost(s.Store.Session("")); err != nil {
				t.Fatalf("SettleLost: %v", err)
			}
			if now := s.Store.Session(""); len(now.Open()) > 0 {
				if err := s.execute(t.Context()); err != nil {
					t.Fatalf("Execute: %v", err)
				}
			}
			if diff := cmp.Diff([]string{tc.want}, s.results()); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
			if calls != tc.calls {
				t.Errorf("the tool is called %d times, want %d", calls, tc.calls)
			}
		})
	}
}

func TestSettleLostLeavesOtherCallsOpen(t *testing.T) {
	s := newSession(t, []tool.Tool{newTool("T", tool.Once)}, `T {"n":1}`, `T {"n":2}`)
	s.begin(t, "s2c2", "T", `{"n":2}`, tool.Once)
	s.config.Captured = func(call string) string { return "output of " + call + "\n" }
	if err := s.runner().SettleLost(s.Store.Session("")); err != nil {
		t.Fatalf("SettleLost: %v", err)
	}
	want := []string{"s2c2: Error: " + toolcall.ResultLost + "\nIts output until then:\noutput of s2c2"}
	if diff := cmp.Diff(want, s.results()); diff != "" {
		t.Errorf("results -want +got:\n%s", diff)
	}
	now := s.Store.Session("")
	if open := now.Open(); len(open) != 1 || open[0].ID != "s2c1" {
		t.Errorf("open are %v, want the call that was not begun", open)
	}
}

func TestOutputOfALostCallIsCutToItsEnd(t *testing.T) {
	s := newSession(t, []tool.Tool{newTool("T", tool.Once)}, `T {}`)
	s.begin(t, "s2c1", "T", `{}`, tool.Once)
	s.config.Captured = func(string) string { return strings.Repeat("a", toolcall.MaxCaptured) + "end" }
	if err := s.runner().SettleLost(s.Store.Session("")); err != nil {
		t.Fatalf("SettleLost: %v", err)
	}
	want := "\n…" + strings.Repeat("a", toolcall.MaxCaptured-3) + "end"
	if got := s.results(); len(got) != 1 || !strings.HasSuffix(got[0], want) {
		t.Errorf("results %.100q, want the last %d bytes of the output", got, toolcall.MaxCaptured)
	}
}

// The call was allowed when it was begun. The same call is not judged once more, another
// one is; a call that may have happened and is now denied says that it may have happened.
func TestPolicyOfACallThatWasBegun(t *testing.T) {
	cases := map[string]struct {
		begun string
		want  string
	}{
		"with the same arguments": {`{"n":1}`, "s2c1: T done"},
		"with other arguments":    {`{"n":2}`, "s2c1: Error: " + toolcall.ResultLost},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, []tool.Tool{newTool("T", tool.Idempotent)}, `T {"n":1}`)
			s.begin(t, "s2c1", "T", tc.begun, tool.Idempotent)
			s.options.Policy = fakePolicy(func(step.Call) toolcall.PolicyResult { return toolcall.PolicyResult{Answer: toolcall.Deny} })
			if err := s.execute(t.Context()); err != nil {
				t.Fatalf("Execute: %v", err)
			}
			if diff := cmp.Diff([]string{tc.want}, s.results()); diff != "" {
				t.Errorf("results -want +got:\n%s", diff)
			}
		})
	}
}
