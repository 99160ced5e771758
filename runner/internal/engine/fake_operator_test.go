package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// childTool has the agent reviewer work in a child Run.
func childTool() tool.Tool {
	t := newTool("child", tool.Resumable, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		return c.Session.Delegate(ctx, tool.Delegation{Agent: "reviewer", Run: true, Input: c.Args})
	})
	t.Timeout = tool.Unbounded
	return t
}

// hangTool is a tool that works until its call is cancelled.
func hangTool() tool.Tool {
	return newTool("Hang", tool.Once, func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		<-ctx.Done()
		return tool.Result{}, ctx.Err()
	})
}

// A fakeOperator is an operator: it makes a child Run for each request that
// it sees, and says how it ended until the request is gone.
type fakeOperator struct {
	*fakeSignals
	mu    sync.Mutex
	made  map[string]task.Pending
	order []string
	twice []string // requests that were seen with something else in them
}

func newOperator() *fakeOperator {
	return &fakeOperator{fakeSignals: newSignals(), made: map[string]task.Pending{}}
}

// say says how a child ended.
func (f *fakeOperator) say(c task.Child) {
	f.update(func(s *signals.Signals) { s.Children = append(slices.Clip(s.Children), c) })
}

// see looks at what is pending. A child ends when its request is seen again.
func (f *fakeOperator) see(pending []task.Pending, end func(task.Pending) task.Child) {
	for _, p := range pending {
		if p.Kind != task.PendingDelegation {
			continue
		}
		if f.makes(p) {
			continue
		}
		if c := end(p); !slices.ContainsFunc(f.ended(), func(was task.Child) bool { return was.Request == p.ID }) {
			f.say(c)
		}
	}
	f.update(func(s *signals.Signals) {
		s.Children = slices.DeleteFunc(slices.Clone(s.Children), func(c task.Child) bool {
			return !slices.ContainsFunc(pending, func(p task.Pending) bool { return p.ID == c.Request })
		})
	})
}

func (f *fakeOperator) ended() []task.Child {
	now, _ := f.Current()
	return now.Children
}

// makes says whether there was no child of the request before.
func (f *fakeOperator) makes(p task.Pending) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	was, known := f.made[p.ID]
	switch {
	case !known:
		f.made[p.ID], f.order = p, append(f.order, p.ID)
	case was.Digest != p.Digest, was.Args != p.Args, was.Agent != p.Agent, was.AskedAt != p.AskedAt:
		f.twice = append(f.twice, p.ID)
	}
	return !known
}

// priced is a usage with a cost; what it writes to a cache no model here does.
func priced(tokens, cost int64) task.Usage {
	return task.Usage{InputTokens: tokens, CacheWriteTokens: tokens, TotalTokens: tokens, CostMicroUSD: &cost, DurationSeconds: 1000}
}

// finished is a child that finished.
func finished(request, text string) task.Child {
	return task.Child{Request: request, Run: "x-" + request, Reason: task.ReasonFinished, Text: text, Usage: priced(1000, 50)}
}
