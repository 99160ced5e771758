package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestParallelCallsRecordTheSameAsSerialOnes(t *testing.T) {
	tools := enginetest.Toolbox{echo("Read", tool.ReadOnly), newTool("Slow", tool.Once, func(_ context.Context, c tool.Call) (tool.Result, error) {
		time.Sleep(time.Duration(len(c.Args)) * time.Millisecond)
		return tool.Result{Text: string(c.Args)}, nil
	})}
	tell := func(parallel int) (told string) {
		synctest.Test(t, func(t *testing.T) {
			s := newTestRun(tools, calls(`Slow {"a":"xxxx"}`, `Read {}`, `Slow {}`, `Nope {}`, `Read {"b":1}`), says("ok"))
			s.Actor.Agent.ParallelTools = parallel
			s.run(t)
			sound(t, s)
			told = s.transcript(t)
		})
		return told
	}
	if one, many := tell(1), tell(8); one != many {
		t.Errorf("one at a time:\n%s\nside by side:\n%s", one, many)
	}
}

func TestConcurrencyClasses(t *testing.T) {
	cases := map[string]struct {
		class tool.Concurrency
		calls []string
		want  time.Duration
	}{
		"parallel calls run side by side":              {tool.Parallel, []string{`T {"path":"a"}`, `T {"path":"a"}`, `T {}`}, time.Second},
		"no more of them than the Agent allows":        {tool.Parallel, []string{`T {}`, `T {}`, `T {}`, `T {}`, `T {}`}, 2 * time.Second},
		"calls on one path run one after the other":    {tool.PerPath, []string{`T {"path":"a"}`, `T {"path":"./a"}`, `T {"path":"b"}`}, 2 * time.Second},
		"a call that names no path may touch them all": {tool.PerPath, []string{`T {"path":"a"}`, `T {}`}, 2 * time.Second},
		"by default calls run one after the other":     {"", []string{`T {}`, `T {}`, `T {}`}, 3 * time.Second},
		"a call that wants to be alone is":             {tool.Sequential, []string{`T {}`, `T {}`, `T {}`}, 3 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := newTool("T", tool.ReadOnly, func(context.Context, tool.Call) (tool.Result, error) {
					time.Sleep(time.Second)
					return tool.Result{}, nil
				})
				slow.Concurrency = tc.class
				s := newTestRun(enginetest.Toolbox{slow}, calls(tc.calls...), says("ok"))
				began := time.Now()
				s.run(t)
				if took := time.Since(began); took != tc.want {
					t.Errorf("took %s, want %s", took, tc.want)
				}
			})
		})
	}
}
