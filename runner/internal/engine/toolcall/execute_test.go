package toolcall_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Each call ends only after the call behind it: the results still come in call order.
func TestParallelCallsKeepTheirOrder(t *testing.T) { synctest.Test(t, testParallelCallsKeepTheirOrder) }

func testParallelCallsKeepTheirOrder(t *testing.T) {
	ended := map[string]chan struct{}{"s2c1": make(chan struct{}), "s2c2": make(chan struct{}), "s2c3": make(chan struct{})}
	after := map[string]string{"s2c1": "s2c2", "s2c2": "s2c3"}
	read := doing(newTool("Read", tool.ReadOnly), func(_ context.Context, c tool.Call) (tool.Result, error) {
		if next, waits := after[c.ID]; waits {
			<-ended[next]
		}
		close(ended[c.ID])
		return tool.Result{Text: string(c.Args)}, nil
	})
	s := newSession(t, []tool.Tool{read}, `Read {"n":1}`, `Read {"n":2}`, `Read {"n":3}`)
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	if diff := cmp.Diff([]string{`s2c1: {"n":1}`, `s2c2: {"n":2}`, `s2c3: {"n":3}`}, s.results()); diff != "" {
		t.Errorf("results -want +got:\n%s", diff)
	}
	var numbers []int64
	for _, st := range s.Store.Session("").Steps[2:] {
		numbers = append(numbers, st.Seq)
	}
	if diff := cmp.Diff([]int64{3, 4, 5}, numbers); diff != "" {
		t.Errorf("numbers of the results -want +got:\n%s", diff)
	}
}

// Which calls of a turn run at once: the tools meet in pairs, or never.
func TestConcurrency(t *testing.T) {
	cases := map[string]struct {
		class    tool.Concurrency
		parallel int
		calls    []string
		want     string
	}{
		"parallel calls":                          {tool.Parallel, 2, []string{`T {}`, `T {}`}, "begin begin end end"},
		"sequential calls":                        {tool.Sequential, 2, []string{`T {}`, `T {}`}, "begin end begin end"},
		"no class is sequential":                  {"", 2, []string{`T {}`, `T {}`}, "begin end begin end"},
		"calls on two paths":                      {tool.PerPath, 2, []string{`T {"path":"a"}`, `T {"path":"b"}`}, "begin begin end end"},
		"calls on one path":                       {tool.PerPath, 2, []string{`T {"path":"a"}`, `T {"path":"./a"}`}, "begin end begin end"},
		"calls on one path, one of them absolute": {tool.PerPath, 2, []string{`T {"path":"a/b"}`, `T {"path":"/workspace/a/b"}`}, "begin end begin end"},
		"no path is any path":                     {tool.PerPath, 2, []string{`T {}`, `T {"path":"b"}`}, "begin end begin end"},
		"no more than the agent allows":           {tool.Parallel, 1, []string{`T {}`, `T {}`}, "begin end begin end"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *fakeSession
				s = newSession(t, []tool.Tool{doing(newTool("T", tool.ReadOnly, func(s *tool.Spec) { s.Concurrency = tc.class }),
					func(context.Context, tool.Call) (tool.Result, error) {
						s.happened("begin")
						<-time.After(time.Second) // in the time of the bubble: the other begins before, if it may
						s.happened("end")
						return tool.Result{}, nil
					})}, tc.calls...)
				s.options.Parallel = tc.parallel
				if err := s.execute(t.Context()); err != nil {
					t.Fatalf("Execute: %v", err)
				}
				var order []string
				for _, e := range s.events {
					if e == "begin" || e == "end" {
						order = append(order, e)
					}
				}
				if got := strings.Join(order, " "); got != tc.want {
					t.Errorf("order %s, want %s", got, tc.want)
				}
			})
		})
	}
}

// The calls that end the session run last and one by one; the first success counts.
func TestEndingCallsComeLast(t *testing.T) {
	finish := doing(newTool("Finish", tool.ReadOnly, enginetest.Ends),
		func(_ context.Context, c tool.Call) (tool.Result, error) { return tool.Result{Output: c.Args}, nil })
	s := newSession(t, []tool.Tool{finish, newTool("Read", tool.ReadOnly)}, `Finish {"n":1}`, `Read {}`, `Finish {"n":2}`)
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	want := []string{"s2c1: " + toolcall.ResultEmpty, "s2c2: Read done", "s2c3: Error: " + toolcall.ResultEnded}
	if diff := cmp.Diff(want, s.results()); diff != "" {
		t.Errorf("results -want +got:\n%s", diff)
	}
	if ending := s.Store.Session("").Ending; ending == nil || string(ending.Output) != `{"n":1}` {
		t.Errorf("the session ended with %v, want the output of the first call", ending)
	}
}

func TestACallThatHasItsResultIsNotMadeAgain(t *testing.T) {
	made := map[string]int{}
	s := newSession(t, []tool.Tool{doing(newTool("Bash", tool.Once, func(s *tool.Spec) { s.Concurrency = tool.Sequential }),
		func(_ context.Context, c tool.Call) (tool.Result, error) {
			made[c.ID]++
			return tool.Result{Text: "again"}, nil
		})}, `Bash {}`, `Bash {}`)
	done := step.Step{Seq: 3, Role: step.RoleTool, CallID: "s2c1", Name: "Bash", Parts: []step.Part{{Kind: step.PartText, Text: "before"}}}
	if err := s.Record(journal.Record{Kind: journal.KindResult, Step: &done}); err != nil {
		t.Fatal(err)
	}
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	if diff := cmp.Diff(map[string]int{"s2c2": 1}, made); diff != "" {
		t.Errorf("calls -want +got:\n%s", diff)
	}
	if diff := cmp.Diff([]string{"s2c1: before", "s2c2: again"}, s.results()); diff != "" {
		t.Errorf("results -want +got:\n%s", diff)
	}
}

// A tool makes its canonical arguments once; policy, intent and tool see the same form.
func TestCanonicalArgumentsReachPolicyAndTool(t *testing.T) {
	var judged, called json.RawMessage
	read := doing(newTool("Read", tool.ReadOnly), func(_ context.Context, c tool.Call) (tool.Result, error) {
		called = c.Args
		return tool.Result{Text: "ok"}, nil
	})
	read.Canonicalize = func(context.Context, json.RawMessage) (json.RawMessage, *tool.Error) {
		return json.RawMessage(`{"path":"/workspace/file"}`), nil // every path is one file
	}
	s := newSession(t, []tool.Tool{read}, `Read {"path":"link"}`)
	s.options.Policy = fakePolicy(func(c step.Call) toolcall.PolicyResult {
		judged = c.Args
		return toolcall.PolicyResult{Answer: toolcall.Allow}
	})
	if err := s.execute(t.Context()); err != nil {
		t.Fatalf("Execute: %v", err)
	}
	const want = `{"path":"/workspace/file"}`
	if string(judged) != want || string(called) != want {
		t.Errorf("the policy judges %s and the tool is called with %s, want %s", judged, called, want)
	}
	if got := string(s.Store.Session("").Steps[1].Calls[0].Args); got != `{"path":"link"}` {
		t.Errorf("the session has the arguments %s, want what the model wrote", got)
	}
}
