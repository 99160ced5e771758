package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// childTool has the agent reviewer work in a child Run.
func childTool() toy {
	t := newToy("child", tool.Resumable, func(ctx context.Context, c tool.Call) (tool.Result, error) {
		return c.Session.Delegate(ctx, tool.Delegation{Agent: "reviewer", Run: true, Input: c.Args})
	})
	t.spec.Timeout = tool.Unbounded
	return t
}

// A nursery is Children as an operator has them: it makes one for each request that
// it sees, and says how it ended until the request is gone.
type nursery struct {
	mu     sync.Mutex
	made   map[string]task.Pending
	order  []string
	ended  []task.Child
	twice  []string // requests that were seen with something else in them
	unsaid chan struct{}
}

func newNursery() *nursery {
	return &nursery{made: map[string]task.Pending{}, unsaid: make(chan struct{})}
}

// say says how a child ended.
func (n *nursery) say(c task.Child) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = append(slices.Clip(n.ended), c)
	close(n.unsaid)
	n.unsaid = make(chan struct{})
}

func (n *nursery) Ended() []task.Child {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ended
}

func (n *nursery) Said() <-chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.unsaid
}

// see looks at what is pending. A child ends when its request is seen again.
func (n *nursery) see(pending []task.Pending, end func(task.Pending) task.Child) {
	for _, p := range pending {
		if p.Kind != task.PendingDelegation {
			continue
		}
		if n.makes(p) {
			continue
		}
		if c := end(p); !slices.ContainsFunc(n.Ended(), func(was task.Child) bool { return was.Request == p.ID }) {
			n.say(c)
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ended = slices.DeleteFunc(slices.Clone(n.ended), func(c task.Child) bool {
		return !slices.ContainsFunc(pending, func(p task.Pending) bool { return p.ID == c.Request })
	})
}

// makes says whether there was no child of the request before.
func (n *nursery) makes(p task.Pending) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	was, known := n.made[p.ID]
	switch {
	case !known:
		n.made[p.ID], n.order = p, append(n.order, p.ID)
	case was.Digest != p.Digest, was.Args != p.Args, was.Agent != p.Agent, was.AskedAt != p.AskedAt:
		n.twice = append(n.twice, p.ID)
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
