package mcp

import (
	"context"
	"io"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// dying ends in the calls of its first starts, and then no longer.
func dying(times int) *fakeSandbox {
	return &fakeSandbox{next: func(n int) (program, error) {
		return func(ctx context.Context, in io.Reader, out, errs io.Writer) int {
			return scripted(only("tools/call", func(request, func(string)) bool {
				if n < times {
					_, _ = io.WriteString(errs, "panic: out of luck\n")
					return false
				}
				return true
			}))(ctx, in, out, errs)
		}, nil
	}}
}

func TestAServerThatDiesInACall(t *testing.T) {
	lost := "Error: the connection to the MCP server of files was lost during the call; it may have partly happened: " +
		"the connection was lost (it ended with exit code 3; its last words: panic: out of luck)\n- " + partly
	cases := map[string]struct {
		effect  tool.Effect
		times   int
		want    []string
		started int32
	}{
		"what may happen once is told, and the next call has a new server": {tool.Once, 1, []string{lost, "done"}, 2},
		"what only reads is done again":                                    {tool.ReadOnly, 1, []string{"done"}, 2},
		"what may be repeated is done again":                               {tool.Idempotent, 1, []string{"done"}, 2},
		"but not for ever": {tool.ReadOnly, 2, []string{
			"Error: the MCP server of files gave no usable answer, and was asked again: the connection was lost (it ended with exit code 3; its last words: panic: out of luck)\n- " + once, "done",
		}, 3},
		"a server that always dies is let go": {tool.Once, 99, []string{
			lost, lost, lost, lost, lost,
			"Error: the MCP server of files has ended: it ended 5 times in a row and is not started again\n- Its tools do not come back in this attempt; do without them.",
		}, 5},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				box := dying(tc.times)
				if diff := cmp.Diff(tc.want, usedUp(t, box, tc.effect, len(tc.want))); diff != "" {
					t.Errorf("-want +got:\n%s", diff)
				}
				if n := box.started.Load(); n != tc.started {
					t.Errorf("it was started %d times, want %d", n, tc.started)
				}
			})
		})
	}
}

// usedUp is what a model reads that calls a tool of an effect again and again.
func usedUp(t *testing.T, box *fakeSandbox, effect tool.Effect, times int) []string {
	t.Helper()
	ts := stdio()
	switch effect {
	case tool.ReadOnly:
		ts.ReadOnly = []string{"do"}
	case tool.Idempotent:
		ts.Idempotent = []string{"do"}
	default:
	}
	s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: box})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	got := make([]string, times)
	for i := range got {
		got[i] = use(t, s, "do", `{}`).Render()
	}
	return got
}

// What was lost once may have happened, even if there is no second time.
func TestAServerThatDiesInACallAndDoesNotComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := dying(99)
		ts := stdio()
		ts.Idempotent = []string{"do"}
		s, err := Connect(t.Context(), Options{Toolset: ts, Sandbox: &fakeSandbox{next: func(n int) (program, error) {
			if n > 0 {
				return nil, &sandbox.RefusedError{Reason: sandbox.NoProgram, Subject: "server"}
			}
			return first.next(n)
		}}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		has(t, use(t, s, "do", `{}`).Render(), "the connection was lost", partly)
	})
}
