package workflowrun

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// invented is a random Workflow. Half of them have limits.
func invented(t *testing.T, r *rand.Rand) *workflow.Revision {
	t.Helper()
	var b strings.Builder
	if r.IntN(2) == 0 {
		fmt.Fprintf(&b, "limits: {tokens: %d}\n", 200+r.IntN(2000))
	}
	b.WriteString("nodes:\n")
	n := 1 + r.IntN(6)
	for i := range n {
		fmt.Fprintf(&b, "- name: n%d\n  %s\n", i, inventedWork(r))
		if i > 0 && r.IntN(2) == 0 {
			fmt.Fprintf(&b, "  dependsOn: [n%d]\n", r.IntN(i))
		}
		if r.IntN(3) == 0 {
			b.WriteString("  onFailure: Continue\n")
		}
	}
	if r.IntN(2) == 0 {
		b.WriteString("finally:\n- {name: f, agent: writer, prompt: \"${{ run.reason }}\", limits: {tokens: 50}}\n")
	}
	return whole(t, b.String())
}

func inventedWork(r *rand.Rand) string {
	agent := fmt.Sprintf("agent: worker\n  limits: {tokens: %d}\n  prompt: go", 50+r.IntN(300))
	switch r.IntN(6) {
	case 0:
		return "approval: {message: \"Go on?\", expiresAfter: 1h}"
	case 1:
		return agent + fmt.Sprintf("\n  forEach: {items: \"[1, 2, 3, 4, 5, 6, 7]\", maxParallel: %d}", 1+r.IntN(4))
	case 2:
		return agent + "\n  loop: {until: \"self.output.n > 3\", maxIterations: 3}"
	case 3:
		return agent + fmt.Sprintf("\n  when: \"%t\"", r.IntN(2) == 0)
	}
	return agent
}

// A trial is a random life of a Run.
type trial struct {
	*cluster
	t       *testing.T
	r       *rand.Rand
	seed    uint64
	old     *v1alpha1.Run    // as a late cache shows it
	removed bool             // somebody deleted a child
	excused map[childKey]int // children that were deleted before anybody could record them
	unseen  map[string]bool  // nodes whose children were hidden before that
}

// befall lets something happen to one of the children, or to the Run.
func (c *trial) befall() {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(c.children)), func(n string) bool { return runstatus.IsFinished(c.children[n]) || isReused(c.children[n]) })
	c.settleReused()
	if len(names) > 0 {
		c.befallChild(names[c.r.IntN(len(names))])
	}
	for _, p := range c.observed().pending() {
		if node := strings.TrimPrefix(p.ID, "approval-"); c.r.IntN(4) == 0 && decidedFor(c.run.Status.Progress.Decided, p.ID) == nil && decisionFor(c.observed(), p.ID) == nil {
			decides(node, []v1alpha1.DecisionType{v1alpha1.DecisionApprove, v1alpha1.DecisionDeny}[c.r.IntN(2)])(c.cluster)
		}
	}
	switch c.r.IntN(60) {
	case 0:
		wants(v1alpha1.DesiredPaused)(c.cluster)
	case 1:
		if c.r.IntN(4) == 0 {
			wants(v1alpha1.DesiredStopped)(c.cluster)
		}
	case 2:
		refuses(forbids("exceeded quota"))(c.cluster)
	case 3, 4, 5:
		takes(c.cluster)
	}
	if c.run.Spec.DesiredState == v1alpha1.DesiredPaused && c.r.IntN(4) == 0 {
		wants(v1alpha1.DesiredRunning)(c.cluster)
	}
	if c.r.IntN(10) == 0 {
		takes(c.cluster)
	}
}

func (c *trial) befallChild(name string) {
	child := c.children[name]
	limit := allowance(c.version, child)
	tokens := 1 + c.r.Int64N(limit)
	if p := child.Status.Progress; p != nil {
		tokens = max(tokens, p.Usage.TotalTokens) // a meter never falls
	}
	usage := spends(tokens)
	switch c.r.IntN(12) {
	case 0, 1, 2, 3, 4:
		ends(name, c.r.IntN(5), usage)(c.cluster)
	case 5:
		fails(name, v1alpha1.ReasonTokenLimit, "no tokens are left", usage)(c.cluster)
	case 6:
		works(name, usage)(c.cluster)
	case 7:
		if c.r.IntN(6) == 0 {
			c.remove(name)
		}
	default:
		if child.Spec.DesiredState == v1alpha1.DesiredStopped {
			fails(name, v1alpha1.ReasonStopped, "Stopped", usage)(c.cluster)
		}
	}
}

// remove deletes a child, as a person may.
func (c *trial) remove(name string) {
	at := keyOf(c.children[name])
	if status := recordedState(c.observed(), at.node); !status.State.Ended() && !reached(c.program(), at, status) {
		c.excused[at]++
	}
	c.removed = true
	isDeleted(name)(c.cluster)
	delete(c.hidden, name)
}

func (c *trial) program() *workflow.Program {
	p, err := workflow.Compile(c.version)
	if err != nil {
		c.t.Fatal(err)
	}
	return p
}

// reached says whether it is recorded that a place has begun.
func reached(p *workflow.Program, at childKey, status graph.Status) bool {
	if p.Node(at.node).Loop != nil {
		return at.index <= status.Started
	}
	return at.index < status.Started
}

func allowance(v *workflow.Revision, c *v1alpha1.Run) int64 {
	return children.Lowest(targetLimits(state{revision: v}, c.Spec.Agent, ""), children.LimitsOf(c.Spec.Limits))[children.Tokens]
}

// live lets the controller take one step: whole, or up to a crash, or with an old
// copy of the Run, or of the list of children.
func (c *trial) live() time.Duration {
	c.hidden = map[string]bool{}
	if c.r.IntN(8) == 0 {
		for name, child := range c.children {
			if !runstatus.IsFinished(child) && c.r.IntN(2) == 0 {
				c.hidden[name] = true
				at := keyOf(child)
				c.unseen[at.node] = c.unseen[at.node] || !reached(c.program(), at, recordedState(c.observed(), at.node))
			}
		}
	}
	switch c.r.IntN(8) {
	case 0: // it dies before it reports
		before := *c.run.Status.DeepCopy()
		_, p := c.acted()
		c.run.Status = before
		return p.wake
	case 1: // it has an old copy, and is refused for it
		now := c.run
		c.run = c.old
		p := decide(c.observed())
		c.run = now
		for _, o := range p.setStates {
			c.children[o.Child.Name].Spec.DesiredState = o.To
		}
		return time.Second
	}
	c.old = c.run.DeepCopy()
	return c.step().wake
}

// holds is what is true after every single step.
func (c *trial) holds() {
	c.t.Helper()
	for at, n := range c.made {
		if n > 1+c.excused[at] {
			c.t.Fatalf("seed %d: %v was made %d times", c.seed, at, n)
		}
	}
	s := c.observed()
	s.children = nil
	for _, child := range c.children {
		s.children = append(s.children, child)
	}
	main, finally := budgets(s)
	for _, p := range []*children.Budget{main, finally} {
		if p.Bounded[children.Tokens] && !c.removed && p.Used[children.Tokens]+p.Reserved[children.Tokens] > p.Limit[children.Tokens] {
			c.t.Fatalf("seed %d: %d used and %d set aside of %d", c.seed, p.Used[children.Tokens], p.Reserved[children.Tokens], p.Limit[children.Tokens])
		}
	}
	if (c.run.Status.CompletionTime != nil) != runstatus.OutcomeOf(c.run.Status).Settles() {
		c.t.Fatalf("seed %d: completionTime is %v, Succeeded %s", c.seed, c.run.Status.CompletionTime, runstatus.OutcomeOf(c.run.Status).Status)
	}
}

// adds says that the numbers of a finished Run are those of its children.
func (c *trial) adds() {
	c.t.Helper()
	var sum v1alpha1.RunProgress
	all := slices.Collect(maps.Values(c.children))
	children.AddUsage(all, &sum)
	if got := c.run.Status.Progress.Usage.TotalTokens; !c.removed && got != sum.Usage.TotalTokens || got < sum.Usage.TotalTokens {
		c.t.Fatalf("seed %d: %d tokens are told, the children used %d", c.seed, got, sum.Usage.TotalTokens)
	}
	for _, n := range c.run.Status.Nodes {
		began, forgiven := 0, c.unseen[n.Name]
		for at := range c.made {
			if at.node == n.Name {
				began++
				forgiven = forgiven || c.excused[at] > 0
			}
		}
		if forgiven {
			continue
		}
		if n.Counts == nil && began == 0 {
			continue
		}
		if n.Counts == nil || int(n.Counts.Started) != began || n.Counts.Succeeded+n.Counts.Failed != n.Counts.Started {
			c.t.Fatalf("seed %d: of node %s %d began; told is %+v", c.seed, n.Name, began, n.Counts)
		}
	}
}

// Whatever befalls its children and its operator, a Run ends; no child is made
// twice; what is set aside is never more than there is; and the numbers add up.
func TestEveryRunEnds(t *testing.T) {
	for seed := range gen.Seeds(24) {
		v := invented(t, rand.New(rand.NewPCG(seed, 1)))
		for life := range uint64(16) {
			live(t, v, seed*1000+life, nil)
		}
	}
}

// live lets a Run live to its end, and returns how it ended. before is the cluster with the Run that it retries, or nil.
func live(t *testing.T, v *workflow.Revision, seed uint64, before *cluster, mods ...func(*v1alpha1.Run)) *trial {
	t.Helper()
	c := &trial{cluster: newCluster(v, mods...), t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 2)), excused: map[childKey]int{}, unseen: map[string]bool{}}
	c.old, c.before = c.run.DeepCopy(), before
	if before != nil {
		c.now = before.now
		c.run.CreationTimestamp = metav1.NewTime(c.now)
	}
	for i := 0; c.run.Status.CompletionTime == nil; i++ {
		if i == 5000 {
			t.Fatalf("seed %d: the Run does not end: %+v\n%+v", seed, runstatus.OutcomeOf(c.run.Status), c.run.Status.Nodes)
		}
		c.befall()
		wake := c.live()
		c.holds()
		c.now = c.now.Add(min(max(wake, time.Second), 10*time.Minute))
	}
	settled := runstatus.OutcomeOf(c.run.Status)
	if c.run.Status.Progress != nil {
		c.adds()
	}
	for range 3 {
		c.hidden = map[string]bool{}
		c.step()
	}
	if is := runstatus.OutcomeOf(c.run.Status); is != settled {
		t.Fatalf("seed %d: a finished Run moved from %+v to %+v", seed, settled, is)
	}
	for name, child := range c.children {
		if !runstatus.IsFinished(child) && child.Spec.DesiredState != v1alpha1.DesiredStopped {
			t.Fatalf("seed %d: the Run left %s behind, at work", seed, name)
		}
	}
	return c
}

// What was done is seen: to decide again changes nothing.
func TestDecidingTwiceIsDecidingOnce(t *testing.T) {
	for seed := range gen.Seeds(24) {
		v := invented(t, rand.New(rand.NewPCG(seed, 3)))
		c := &trial{cluster: newCluster(v), t: t, seed: seed, r: rand.New(rand.NewPCG(seed, 4)), excused: map[childKey]int{}, unseen: map[string]bool{}}
		for range 60 {
			c.befall()
			c.refuse = nil
			for range 5 {
				c.step()
			}
			writes := c.writes
			if p := c.step(); len(p.create) > 0 || len(p.setStates) > 0 || c.writes != writes {
				t.Fatalf("seed %d: at rest, and still %s (%d writes)", seed, deed(p), c.writes-writes)
			}
			c.now = c.now.Add(time.Minute)
		}
	}
}
