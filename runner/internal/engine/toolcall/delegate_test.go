package toolcall_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// delegating returns a tool that has an agent work in a child Run.
func delegating(input string) tool.Tool {
	return doing(newTool("agent", tool.Resumable, func(s *tool.Spec) { s.Timeout = tool.Unbounded }),
		func(ctx context.Context, c tool.Call) (tool.Result, error) {
			return c.Session.Delegate(ctx, tool.Delegation{Agent: "child", Run: true, Input: json.RawMessage(input)})
		})
}

func TestResultOfAChildRun(t *testing.T) {
	alone := "\n- " + toolcall.AdviceAlone
	cases := map[string]struct {
		input string
		child task.Child
		want  string
	}{
		"it finished with an output":   {`{}`, task.Child{Run: "r", Reason: task.ReasonFinished, Output: `{"ok":true}`}, `{"ok":true}`},
		"it finished with a text":      {`{}`, task.Child{Run: "r", Reason: task.ReasonFinished, Text: "done"}, "done"},
		"it rejected the work":         {`{}`, task.Child{Run: "r", Reason: task.ReasonRejected, Text: "no access"}, "Error: " + fmt.Sprintf(toolcall.ResultRejected, "child", "no access")},
		"a limit ended it":             {`{}`, task.Child{Run: "r", Reason: task.ReasonStepLimit, Message: "Used 3 of 3 steps", Text: "half"}, "Error: " + fmt.Sprintf(toolcall.ResultChild, "child", task.ReasonStepLimit, "Used 3 of 3 steps") + "\n- " + fmt.Sprintf(toolcall.ResultPartial, "half")},
		"there is none":                {`{}`, task.Child{Message: "no such Agent"}, "Error: " + fmt.Sprintf(toolcall.ResultRefusedRun, "child", "no such Agent") + alone},
		"its input is too large":       {`{"text":"` + strings.Repeat("x", task.MaxDelegated) + `"}`, task.Child{}, "Error: " + fmt.Sprintf(toolcall.ResultInputLarge, task.MaxDelegated+11, "child", task.MaxDelegated) + "\n- " + toolcall.AdviceShorter},
		"its input has a member twice": {`{"a":1,"a":2}`, task.Child{}, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSession(t, []tool.Tool{delegating(tc.input)}, `agent {}`)
				s.setOperator()
				go func() {
					synctest.Wait() // the call waits
					tc.child.Request = "s2c1"
					s.Signals.Update(func(now *signals.Signals) { now.Children = []task.Child{tc.child} })
				}()
				if err := s.execute(t.Context()); err != nil {
					t.Fatalf("Execute: %v", err)
				}
				got := s.results()
				if tc.want == "" && len(got) == 1 && strings.HasPrefix(got[0], "s2c1: Error: Not executed: ") {
					return // the digest says which member
				}
				if diff := cmp.Diff([]string{"s2c1: " + tc.want}, got); diff != "" {
					t.Errorf("results -want +got:\n%s", diff)
				}
			})
		})
	}
}

func TestAChildRunNeedsAnOperator(t *testing.T) {
	s := newSession(t, []tool.Tool{delegating(`{}`)}, `agent {}`)
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	want := []string{"s2c1: Error: " + fmt.Sprintf(toolcall.ResultNoOperator, "child") + "\n- " + toolcall.AdviceAlone}
	if diff := cmp.Diff(want, s.results()); diff != "" {
		t.Errorf("results -want +got:\n%s", diff)
	}
}

// The runner leaves while a child Run works. The next attempt asks for no second one, with
// whatever input the tool would ask then.
func TestAResumedCallWaitsForTheSameChildRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSession(t, []tool.Tool{delegating(`{"n":1}`)}, `agent {}`)
		s.setOperator()
		go func() {
			synctest.Wait()
			s.Signals.Update(func(now *signals.Signals) { now.Interrupted = true })
		}()
		if err := s.execute(t.Context()); err != nil {
			t.Fatalf("Execute: %v", err)
		}
		if got := s.results(); len(got) > 0 {
			t.Fatalf("the call has the result %q", got)
		}

		s.Signals = &signals.Latest{}
		s.config.Signals = s.Signals
		s.options.Tools = enginetest.Toolbox{delegating(`{"n":2}`)}
		s.setOperator()
		s.Signals.Update(func(now *signals.Signals) {
			now.Children = []task.Child{{Request: "s2c1", Run: "r", Reason: task.ReasonFinished, Text: "done"}}
		})
		if err := s.execute(t.Context()); err != nil {
			t.Fatalf("Execute: %v", err)
		}
		if diff := cmp.Diff([]string{"s2c1: done"}, s.results()); diff != "" {
			t.Errorf("results -want +got:\n%s", diff)
		}
		asked := 0
		for r, err := range s.Journal.Read() {
			if err != nil {
				t.Fatal(err)
			}
			if r.Request != nil {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("the operator is asked for %d child Runs, want 1", asked)
		}
	})
}
