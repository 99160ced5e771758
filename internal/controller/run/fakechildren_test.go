package run

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A family is what there is of a Run's children in a story, and above it.
type family struct {
	children []*v1alpha1.Run // those that are there
	above    []children.Ancestor
	others   []queue.Entry // of the same Agent
	limit    int32         // of its active Runs
	declines error         // what the API server says to the next children
	made     []string      // the names of all children that there ever were
}

func (f *family) show(s *state, agents map[string]*v1alpha1.Agent) {
	for _, c := range f.children {
		s.children = append(s.children, *cachedRun(c))
	}
	s.ancestors, s.agents = f.above, agents
	if f.limit > 0 && s.attempt() == 0 {
		self := queue.Entry{UID: s.run.UID, Name: s.run.Name, Created: s.run.CreationTimestamp.Time, State: queue.StateOf(s.run)}
		s.position = queue.Positions(append([]queue.Entry{self}, f.others...), f.limit)[s.run.UID]
	}
}

// make does what delegate does on a real cluster.
func (f *family) make(s state, p plan) facts {
	switch {
	case f.declines != nil && !isAnswerToChild(f.declines):
		return failed(p, f.declines)
	case f.declines != nil:
		return facts{childRefused: f.declines, childRequest: p.request.ID}
	}
	child := p.child.DeepCopy()
	child.UID = types.UID("uid-" + child.Name)
	child.CreationTimestamp = metav1.NewTime(s.now)
	child.Spec.DesiredState = v1alpha1.DesiredRunning
	child.Status = gen.Run().Status
	f.children, f.made = append(f.children, child), append(f.made, child.Name)
	return facts{}
}

func (f *family) setStates(changes []children.StateChange) {
	for _, c := range changes {
		child := f.child(c.Child.Name)
		child.Spec.DesiredState = c.To
		delete(child.Annotations, v1alpha1.AnnotationPaused)
		if c.PausedByParent {
			child.Annotations[v1alpha1.AnnotationPaused] = "true"
		}
	}
}

func (f *family) child(name string) *v1alpha1.Run {
	for _, c := range f.children {
		if c.Name == name {
			return c
		}
	}
	panic("the script speaks of Run " + name + ", which is not there")
}

// withReviewer are objects with an Agent that others may give work to.
func withReviewer(o snapshot.Objects) snapshot.Objects {
	o.Agents["reviewer"] = gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.Spec.Tools = "reviewer", nil })
	return o
}

// delegatesTo makes an Agent one that gives the reviewer work in Runs of its own.
func delegatesTo(mods ...func(*v1alpha1.Agent)) func(*v1alpha1.Agent) {
	return func(a *v1alpha1.Agent) {
		a.Spec.Tools = append(a.Spec.Tools, v1alpha1.Tool{Agent: "reviewer", Delegation: &v1alpha1.Delegation{Mode: v1alpha1.AgentModeRun}})
		for _, mod := range mods {
			mod(a)
		}
	}
}

func onDisk(a *v1alpha1.Agent) { a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume }

// review is a request for a Run of the reviewer.
func review(id string, mods ...func(*v1alpha1.PendingRequest)) v1alpha1.PendingRequest {
	p := v1alpha1.PendingRequest{ID: id, Kind: task.PendingDelegation, Agent: "reviewer", Args: `{"prompt":"Review it."}`, Digest: strings.Repeat("a", 64)}
	for _, mod := range mods {
		mod(&p)
	}
	return p
}

// cancelled marks the request of a call that was cancelled.
func cancelled(p *v1alpha1.PendingRequest) { p.Cancelled = true }

// askedAfter sets when a request was made, counted from the beginning of a story.
func askedAfter(d time.Duration) func(*v1alpha1.PendingRequest) {
	return func(p *v1alpha1.PendingRequest) { p.AskedAt = &metav1.Time{Time: gen.Noon.Add(d)} }
}

// asksFor is a runner that waits for child Runs.
func asksFor(pending ...v1alpha1.PendingRequest) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		begun(p)
		awaits(v1alpha1.ReasonAwaitingChild, pending...)(p)
	}
}

// spends is what a Run used in all.
func spends(tokens int64) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Usage.TotalTokens = tokens }
}

// chargesChildren is what the child Runs used of that whose results the runner has read.
func chargesChildren(tokens int64) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Usage.ChildTokens = &tokens }
}

// isDoing is a child Run that is at work.
func isDoing(name, reason string) func(*cluster) {
	return func(c *cluster) {
		child := c.child(name)
		runstatus.Outcome{Status: metav1.ConditionUnknown, Reason: reason, Message: "Attempt 1 is at work"}.WriteStatus(&child.Status, child, c.now)
	}
}

// does is a child Run that ends, one way or the other.
func does(name, reason, text string, tokens int64) func(*cluster) {
	return func(c *cluster) {
		child := c.child(name)
		o := runstatus.Outcome{Status: metav1.ConditionTrue, Reason: reason, Message: "The work is done"}
		if reason != v1alpha1.ReasonFinished {
			o.Status, o.Message = metav1.ConditionFalse, "It did not work"
		}
		child.Status.Progress = &v1alpha1.RunProgress{Attempt: 1, Usage: v1alpha1.Usage{TotalTokens: tokens}, Result: &v1alpha1.Result{Committed: true, Reason: reason, Text: text}}
		o.WriteStatus(&child.Status, child, c.now)
	}
}

// loses is somebody who deletes a child Run.
func loses(name string) func(*cluster) {
	return func(c *cluster) {
		_ = c.child(name) // it is there
		var kept []*v1alpha1.Run
		for _, child := range c.children {
			if child.Name != name {
				kept = append(kept, child)
			}
		}
		c.children = kept
	}
}
