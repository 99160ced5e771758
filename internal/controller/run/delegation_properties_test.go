package run

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A caller is a runner with its journal on a volume that gives work to others.
type caller struct {
	*cluster
	t         *testing.T
	r         *rand.Rand
	asked     int
	open      []string          // as the journal knows them
	shown     map[string]bool   // those that the current attempt has asked again
	heard     map[string]string // what came of each, as the journal knows it
	used      int64
	own       int64    // of that, not by children
	cancelled []string // requests whose calls were cancelled before they had a result
	lost      int
	died      []string // children that somebody deleted
}

const callersLimit = 10_000

func newCaller(t *testing.T, seed uint64) *caller {
	t.Helper()
	return &caller{
		cluster: newCluster(t, gen.Run(tokens("10k")), gen.Agent(delegatesTo(onDisk))),
		t:       t, r: rand.New(rand.NewPCG(seed, 6)), shown: map[string]bool{}, heard: map[string]string{},
	}
}

func (c *caller) number() int {
	a := c.run.Status.Attempt
	if a == nil || a.PodUID == "" || !runnerpod.IsAlive(c.pods[a.Pod]) || runstatus.IsFinished(c.run) {
		return 0
	}
	return int(a.Number)
}

func (c *caller) reportPending(mods ...func(*v1alpha1.RunProgress)) {
	var pending []v1alpha1.PendingRequest
	for _, id := range c.open {
		if c.shown[id] && len(pending) < task.MaxPending {
			pending = append(pending, review(id))
		}
	}
	state := ""
	if len(pending) > 0 {
		state = v1alpha1.ReasonAwaitingChild
	}
	reports(c.number(), append([]func(*v1alpha1.RunProgress){begun, awaits(state, pending...), spends(c.used), chargesChildren(c.used - c.own)}, mods...)...)(c.cluster)
}

// hear goes on with what came of child Runs, as far as this attempt asks that.
func (c *caller) hear() {
	for _, child := range runnerpod.SignalsIn(c.pod(c.number())).Children {
		if !c.shown[child.Request] {
			continue
		}
		if _, twice := c.heard[child.Request]; twice {
			c.t.Fatalf("%s is heard of twice", child.Request)
		}
		c.heard[child.Request] = string(child.Reason)
		c.used += child.Usage.TotalTokens
		delete(c.shown, child.Request)
		c.open = slices.DeleteFunc(c.open, func(id string) bool { return id == child.Request })
	}
	c.reportPending()
}

// cancelCall ends a call without the result of its child Run, as the duration of its agent does.
func (c *caller) cancelCall(id string) {
	delete(c.shown, id)
	c.open = slices.DeleteFunc(c.open, func(other string) bool { return other == id })
	c.cancelled = append(c.cancelled, id)
	c.reportPending()
}

func (c *caller) leave() {
	n, reason := c.number(), task.ReasonWaiting
	if runnerpod.SignalsIn(c.pod(n)).Pause {
		reason = task.ReasonPaused
	} else if len(c.open) == 0 || len(c.shown) < len(c.open) {
		return
	}
	c.reportPending(leaves(reason))
	exits(n, 75)(c.cluster)
	c.shown = map[string]bool{}
}

func (c *caller) befalls() {
	n := c.number()
	if n == 0 {
		return
	}
	starts(n)(c.cluster)
	switch c.r.IntN(7) {
	case 0:
		if c.asked < maxChildren {
			c.asked++
			id := fmt.Sprintf("s%dc1", c.asked)
			c.open, c.shown[id] = append(c.open, id), true
		}
		c.reportPending()
	case 1:
		c.showAll()
	case 2:
		n := c.r.Int64N(20)
		c.used, c.own = c.used+n, c.own+n
		c.reportPending()
	case 3:
		c.hear()
	case 4:
		c.leave()
	case 5:
		if c.lost++; c.lost < 8 {
			isEvicted(n)(c.cluster)
			c.shown = map[string]bool{}
		}
	case 6:
		if len(c.open) > 0 && c.r.IntN(4) == 0 {
			c.cancelCall(c.open[c.r.IntN(len(c.open))])
		}
	}
}

func (c *caller) showAll() {
	for _, id := range c.open {
		c.shown[id] = true
	}
	c.reportPending()
}

// grows lets something become of the children.
func (c *caller) grows() {
	for _, child := range c.children {
		switch {
		case runstatus.IsFinished(child):
		case child.Spec.DesiredState == v1alpha1.DesiredStopped:
			does(child.Name, v1alpha1.ReasonStopped, "", 0)(c.cluster)
		case c.r.IntN(40) == 0 && slices.Contains(c.run.Status.Internal.Delegated, childMark(child.Labels[v1alpha1.LabelRequest])):
			loses(child.Name)(c.cluster)
			c.died = append(c.died, child.Labels[v1alpha1.LabelRequest])
		case c.r.IntN(4) == 0 && child.Spec.DesiredState == v1alpha1.DesiredRunning:
			most := snapshot.Lower(task.Limits{}, *child.Spec.Limits).Tokens
			does(child.Name, v1alpha1.ReasonFinished, "", c.r.Int64N(most+1))(c.cluster)
		}
	}
}

// stepOnce lets the operator take a step, or die before it could record what it
// did.
func (c *caller) stepOnce() {
	before := *c.run.Status.DeepCopy()
	if p := c.step(); p.child != nil && c.r.IntN(3) == 0 {
		c.run.Status = before
	}
}

// check holds at any time: what may be used in all is never more than the limit,
// and no child Run is made twice.
func (c *caller) check(seed uint64) {
	c.t.Helper()
	sum := c.used
	for _, child := range c.children {
		_, heard := c.heard[child.Labels[v1alpha1.LabelRequest]]
		switch {
		case !runstatus.IsFinished(child):
			sum += snapshot.Lower(task.Limits{}, *child.Spec.Limits).Tokens
		case !heard:
			sum += child.Status.Progress.Usage.TotalTokens
		}
	}
	// What it uses itself when all is set aside nobody can set aside.
	if sum > callersLimit+c.own {
		c.t.Fatalf("seed %d: %d tokens may be used, %d are allowed", seed, sum, callersLimit)
	}
	if all := slices.Sorted(slices.Values(c.made)); len(slices.Compact(all)) < len(c.made) {
		c.t.Fatalf("seed %d: one is made twice: %v", seed, c.made)
	}
}

// What child Runs found is heard of, once each, whatever befalls the pods of the
// Run that asked for them, and the operator. None is made twice, and all of them
// keep within what there is.
func TestChildRunsAreMadeAndHeardOfOnce(t *testing.T) {
	for seed := range gen.Seeds(40) {
		c := newCaller(t, seed)
		for range 200 {
			switch c.r.IntN(8) {
			case 0:
				wants([]v1alpha1.DesiredState{v1alpha1.DesiredPaused, v1alpha1.DesiredRunning, v1alpha1.DesiredRunning}[c.r.IntN(3)])(c.cluster)
			case 1, 2, 3:
				c.befalls()
			case 4:
				c.grows()
			default:
				c.stepOnce()
			}
			c.check(seed)
			c.now = c.now.Add(time.Duration(c.r.IntN(5)) * time.Second)
		}
		c.finish(seed)
	}
}

// finish lets everything go well, and looks what became of what was asked for.
func (c *caller) finish(seed uint64) {
	c.t.Helper()
	if runstatus.IsFinished(c.run) {
		c.t.Fatalf("seed %d: it ended: %s", seed, sentence(reasonOf(c.run), messageOf(c.run)))
	}
	wants(v1alpha1.DesiredRunning)(c.cluster)
	for range 200 {
		c.step()
		if n := c.number(); n > 0 {
			starts(n)(c.cluster)
			c.showAll()
			c.step()
			c.hear()
		}
		c.grows()
		c.check(seed)
		c.now = c.now.Add(10 * time.Second)
	}
	if len(c.open) > 0 || len(c.heard)+len(c.cancelled) != c.asked {
		c.t.Errorf("seed %d: %d were asked for, %d heard of, %d cancelled; open are %v", seed, c.asked, len(c.heard), len(c.cancelled), c.open)
	}
	for id, reason := range c.heard {
		if reason == "RunDeleted" && !slices.Contains(c.died, id) {
			c.t.Errorf("seed %d: %s is said to be deleted", seed, id)
		}
	}
}
