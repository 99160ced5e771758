package toolcall_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func failing(res tool.Result, err error) func(context.Context, tool.Call) (tool.Result, error) {
	return func(context.Context, tool.Call) (tool.Result, error) { return res, err }
}

// endings are a tool that ends the session with success and one that does not, beside Bash.
func endings(bash tool.Tool) []tool.Tool {
	return []tool.Tool{bash, newTool("Read", tool.ReadOnly), newTool("Finish", tool.ReadOnly, enginetest.Ends), newTool("Reject", tool.ReadOnly, enginetest.Ends)}
}

func TestFinishIsNotAcceptedBesideAFailureThatTheModelHasNotRead(t *testing.T) {
	succeeds := newTool("Bash", tool.Once)
	exits := doing(succeeds, failing(tool.Result{Text: "FAIL\nexit code: 1", Failed: true}, nil))
	for name, tc := range map[string]struct {
		bash   tool.Tool
		calls  []string
		change func(*testing.T, *fakeSession)
		unread string // the tools that failed; empty: the session ends
	}{
		"a command that succeeds":              {bash: succeeds, calls: []string{"Bash {}", "Finish {}"}},
		"an exit code other than 0":            {bash: exits, calls: []string{"Bash {}", "Finish {}"}, unread: "Bash"},
		"finish before the call that fails":    {bash: exits, calls: []string{"Finish {}", "Bash {}"}, unread: "Bash"},
		"a failure among successes":            {bash: exits, calls: []string{"Read {}", "Bash {}", "Read {}", "Finish {}"}, unread: "Bash"},
		"a result that reports an error":       {bash: doing(succeeds, failing(tool.Fail("no such file"), nil)), calls: []string{"Bash {}", "Finish {}"}, unread: "Bash"},
		"an error of the tool":                 {bash: doing(succeeds, failing(tool.Result{}, errors.New("broken"))), calls: []string{"Bash {}", "Finish {}"}, unread: "Bash"},
		"a tool that is not there":             {bash: succeeds, calls: []string{"Missing {}", "Finish {}"}, unread: "Missing"},
		"arguments that do not fit":            {bash: succeeds, calls: []string{`Bash []`, "Finish {}"}, unread: "Bash"},
		"a finish that does not fit":           {bash: succeeds, calls: []string{`Finish []`, "Finish {}"}, unread: "Finish"},
		"several failures, each named once":    {bash: exits, calls: []string{"Bash {}", "Missing {}", "Bash {}", "Finish {}"}, unread: "Bash, Missing"},
		"a call that the policy denies":        {bash: succeeds, calls: []string{"Bash {}", "Finish {}"}, change: denying, unread: "Bash"},
		"a call that a hook vetoes":            {bash: succeeds, calls: []string{"Bash {}", "Finish {}"}, change: vetoing, unread: "Bash"},
		"a call that an earlier runner lost":   {bash: succeeds, calls: []string{"Bash {}", "Finish {}"}, change: losing, unread: "Bash"},
		"a failure from an earlier attempt":    {bash: succeeds, calls: []string{"Bash {}", "Finish {}"}, change: resumed(true), unread: "Bash"},
		"a result that does not say it failed": {bash: exits, calls: []string{"Bash {}", "Finish {}"}, change: resumed(false)},
		"a failure of the turn before":         {bash: exits, calls: []string{"Bash {}"}, change: nextTurn},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSession(t, endings(tc.bash), tc.calls...)
			if tc.change != nil {
				tc.change(t, s)
			}
			if err := s.execute(t.Context()); err != nil {
				t.Fatalf("Execute: %v", err)
			}
			if ended := s.Store.Session("").Ending != nil; ended != (tc.unread == "") {
				t.Errorf("the session ends: %v", ended)
			}
			if want := "Error: " + fmt.Sprintf(toolcall.ResultUnread, tc.unread); tc.unread != "" && !hasResult(s, want) {
				t.Errorf("results %q, want %q", s.results(), want)
			}
		})
	}
}

// hasResult reports whether a call of finish has a result with this text.
func hasResult(s *fakeSession, text string) bool {
	return slices.ContainsFunc(s.Store.Session("").Steps, func(st step.Step) bool { return st.Name == "Finish" && st.Text() == text })
}

func denying(_ *testing.T, s *fakeSession) {
	s.options.Policy = fakePolicy(func(c step.Call) toolcall.PolicyResult {
		if c.Name == "Bash" {
			return toolcall.PolicyResult{Answer: toolcall.Deny}
		}
		return toolcall.PolicyResult{Answer: toolcall.Allow}
	})
}

func vetoing(t *testing.T, s *fakeSession) {
	s.options.Stack = layer(t, func(next middleware.ToolFunc) middleware.ToolFunc {
		return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
			if c.Name == "Bash" {
				return tool.Result{}, &middleware.VetoError{By: "guard", Reason: "no"}
			}
			return next(ctx, c)
		}
	})
}

// losing has an earlier runner begin the command and leave no result.
func losing(t *testing.T, s *fakeSession) {
	s.begin(t, "s2c1", "Bash", "{}", tool.Once)
	if err := s.runner().SettleLost(s.Store.Session("")); err != nil {
		t.Fatal(err)
	}
}

// resumed has an earlier runner record the result of the command. Runners before the field
// Failed recorded every result of a command without it.
func resumed(failed bool) func(*testing.T, *fakeSession) {
	return func(t *testing.T, s *fakeSession) {
		done := step.Step{Seq: 3, Role: step.RoleTool, CallID: "s2c1", Name: "Bash", Failed: failed}
		if err := s.Record(journal.Record{Kind: journal.KindResult, Step: &done}); err != nil {
			t.Fatal(err)
		}
	}
}

// nextTurn has the model read the results, and finish in a turn of its own.
func nextTurn(t *testing.T, s *fakeSession) {
	if err := s.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.AddTurn(step.FinishCalls, "Finish {}"); err != nil {
		t.Fatal(err)
	}
}

func TestARejectionStandsBesideAFailure(t *testing.T) {
	s := newSession(t, endings(doing(newTool("Bash", tool.Once), failing(tool.Fail("no"), nil))), "Bash {}", "Reject {}")
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	ending := s.Store.Session("").Ending
	if ending == nil {
		t.Fatal("the session goes on")
	}
	if diff := cmp.Diff(task.ToolReject, ending.Tool); diff != "" {
		t.Errorf("ending -want +got:\n%s", diff)
	}
}
