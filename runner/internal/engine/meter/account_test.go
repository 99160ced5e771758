package meter

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Whoever watches that the runner responds reads the meter for it.
func TestReadWaitsForTheLocks(t *testing.T) {
	a := New(NewClock(time.Now, time.Time{}), task.Limits{}, step.Meter{})
	for name, lock := range map[string]*sync.Mutex{"accounts": a.mu, "clock": &a.clock.mu} {
		lock.Lock()
		var free atomic.Bool
		returned := make(chan bool)
		go func() {
			a.Read()
			returned <- free.Load()
		}()
		for range 100 {
			runtime.Gosched()
		}
		free.Store(true)
		lock.Unlock()
		if !<-returned {
			t.Errorf("it does not wait for the lock of the %s", name)
		}
	}
}

// A grant raises the limits that there are: of a Run without a limit it makes none, which would
// end it at once.
func TestExtendRaisesLimits(t *testing.T) {
	all := task.Limits{Steps: 10, Tokens: 1000, CostMicroUSD: 500, ModelCalls: 7, ToolCalls: 8, DurationSeconds: 9, Depth: 1}
	none := task.Limits{ToolCalls: 8}
	cases := map[string]struct {
		limits              task.Limits
		steps, tokens, cost int64
		want                task.Limits
	}{
		"all of them":                     {all, 1, 20, 300, task.Limits{Steps: 11, Tokens: 1020, CostMicroUSD: 800, ModelCalls: 7, ToolCalls: 8, DurationSeconds: 9, Depth: 1}},
		"one of them":                     {all, 0, 20, 0, task.Limits{Steps: 10, Tokens: 1020, CostMicroUSD: 500, ModelCalls: 7, ToolCalls: 8, DurationSeconds: 9, Depth: 1}},
		"limits that there are not":       {none, 1, 20, 300, none},
		"one that there is, one that not": {task.Limits{Steps: 10}, 1, 20, 0, task.Limits{Steps: 11}},
		"less than nothing":               {all, -1, -20, -300, all},
		"more than a number can hold":     {all, math.MaxInt64, 20, 300, task.Limits{Steps: 10, Tokens: 1020, CostMicroUSD: 800, ModelCalls: 7, ToolCalls: 8, DurationSeconds: 9, Depth: 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			a := New(NewClock(time.Now, time.Time{}), tc.limits, step.Meter{Steps: 5, Usage: step.Usage{InputTokens: 50}})
			a.Extend(tc.steps, tc.tokens, tc.cost)
			if diff := cmp.Diff(tc.want, a.Limits()); diff != "" {
				t.Errorf("limits -want +got:\n%s", diff)
			}
			if g := a.Reached(); g != nil {
				t.Errorf("it ends the Run: %s", g)
			}
		})
	}
}

// A session is bounded by its own limits and by those above it, and what it uses counts above.
func TestLimitsOfASessionAndThoseAboveIt(t *testing.T) {
	root := New(NewClock(time.Now, time.Time{}), task.Limits{Steps: 3, ToolCalls: 2}, step.Meter{})
	child := root.Open(task.Limits{Steps: 2}, step.Meter{})
	child.Add(func(m *step.Meter) { m.Steps++ })
	root.Add(func(m *step.Meter) { m.Steps++ })
	if root.Reached() != nil || child.Reached() != nil {
		t.Error("a limit is reached too early")
	}
	child.Add(func(m *step.Meter) { m.Steps++ })
	if g := child.Reached(); g == nil || g.ofRun || g.String() != "Used 2 of 2 steps" {
		t.Errorf("of the session %v is reached", g)
	}
	if g := root.Reached(); g == nil || !g.ofRun || g.String() != "Used 3 of 3 steps" {
		t.Errorf("of the Run %v is reached", g)
	}
	if !child.Reserve() || !root.Reserve() || child.Reserve() || root.Reserve() {
		t.Error("not exactly two tool calls are reserved")
	}
	child.Release()
	if !child.Reserve() {
		t.Error("what was released is not reserved")
	}
}
