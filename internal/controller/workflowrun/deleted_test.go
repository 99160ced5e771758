package workflowrun

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

func (c *cluster) usage() v1alpha1.Usage { return c.run.Status.Progress.Usage }

// A job that deletes what is finished gives no budget back.
func TestDeletedIterationsStayCharged(t *testing.T) {
	c := newCluster(whole(t, `
limits: {tokens: 1000}
nodes:
- {name: a, agent: worker, prompt: go, limits: {tokens: 300}, loop: {until: "false", maxIterations: 19}}
`))
	c.step()
	c.step()
	for i := 1; c.children[fmt.Sprintf("x-a-%d", i)] != nil; i++ {
		name := fmt.Sprintf("x-a-%d", i)
		ends(name, 1, spends(allowance(c.version, c.child(name))))(c)
		c.step()
		if c.run.Status.CompletionTime == nil {
			isDeleted(name)(c)
			c.step()
		}
	}
	if is := runstatus.OutcomeOf(c.run.Status); is.Reason != v1alpha1.ReasonTokenLimit {
		t.Errorf("after %d iterations the Run is %+v", len(c.made), is)
	}
	if u := c.usage(); len(c.made) != 4 || u.TotalTokens != 1000 {
		t.Errorf("%d iterations used %+v", len(c.made), u)
	}
}

// Nobody knows what a deleted child used after its last report, so it counts with all
// that was reserved for it, where the Workflow has a limit.
func TestADeletedChildIsChargedItsReservation(t *testing.T) {
	c := begun(t, `
limits: {tokens: 1000, cost: 1USD}
nodes:
- {name: a, agent: worker, prompt: x, limits: {tokens: 300, cost: 0.2USD}, onFailure: Continue}
- {name: b, agent: worker, prompt: x, dependsOn: [a]}
`)
	works("x-a", spends(40))(c)
	c.step()
	isDeleted("x-a")(c)
	c.step()
	c.step()
	if u := c.usage(); u.TotalTokens != 300 || *u.CostMicroUSD != 200_000 {
		t.Errorf("the Run has used %d tokens and %d µUSD, want the 300 and 200000 that were reserved", u.TotalTokens, *u.CostMicroUSD)
	}
	if l := c.child("x-b").Spec.Limits; *l.Tokens != "700" || *l.Cost != "0.80USD" {
		t.Errorf("b may use %s tokens and %s, want what is left after the reservation", *l.Tokens, *l.Cost)
	}
	ends("x-b", 1, spends(100))(c)
	c.step()
	if u := c.usage(); u.TotalTokens != 400 {
		t.Errorf("in the end the Run has used %d tokens, want 400", u.TotalTokens)
	}
}

// Where the Workflow has no limit nothing is reserved, and numbers do not fall.
func TestUsageDoesNotFallWhenAChildIsDeleted(t *testing.T) {
	c := begun(t, `
nodes:
- {name: a, agent: worker, prompt: x, onFailure: Continue}
- {name: b, agent: worker, prompt: x, dependsOn: [a]}
`)
	ends("x-a", 1, spends(100))(c)
	c.step()
	isDeleted("x-a")(c)
	c.step()
	c.step()
	ends("x-b", 1, spends(40))(c)
	c.step()
	if u := c.usage(); u.TotalTokens != 100 {
		t.Errorf("the Run has used %d tokens, want 100", u.TotalTokens)
	}
}

// The result of a deleted Run cannot be read any more: what needs it fails and names
// the Run. What does not need it goes on.
func TestWhoNeedsADeletedResultNamesTheRun(t *testing.T) {
	cases := map[string]struct {
		node    string
		deleted string
		reason  string
		message string
	}{
		"an output": {
			"{name: b, agent: worker, prompt: \"after ${{ nodes.a.output.n }}\", dependsOn: [slow]}", "x-a", v1alpha1.ReasonNodeFailed,
			"Run x-a of node a was deleted",
		},
		"a text": {
			"{name: b, agent: worker, prompt: \"after ${{ nodes.a.text }}\", dependsOn: [slow]}", "x-a", v1alpha1.ReasonNodeFailed,
			"Run x-a of node a was deleted",
		},
		"one item of many": {
			"{name: b, agent: worker, prompt: \"after ${{ nodes.many.output[1].n }}\", dependsOn: [slow, many]}", "x-many-1", v1alpha1.ReasonNodeFailed,
			"Run x-many-1 of node many was deleted",
		},
		"another item of the same list": {
			"{name: b, agent: worker, prompt: \"after ${{ nodes.many.output[0].n }}\", dependsOn: [slow, many]}", "x-many-1", v1alpha1.ReasonNodeFailed,
			"Run x-many-1 of node many was deleted",
		},
		"its state alone": {
			"{name: b, agent: worker, prompt: \"after ${{ nodes.a.state }}\", dependsOn: [slow]}", "x-a", v1alpha1.ReasonFinished,
			"4 nodes: 4 succeeded",
		},
		"another node": {
			"{name: b, agent: worker, prompt: \"after ${{ nodes.slow.output.n }}\", dependsOn: [a]}", "x-a", v1alpha1.ReasonFinished,
			"4 nodes: 4 succeeded",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := begun(t, `
nodes:
- {name: a, agent: worker, prompt: x}
- {name: many, agent: worker, prompt: x, forEach: {items: "[1, 2]"}}
- {name: slow, agent: worker, prompt: x}
- `+tc.node)
			several(ends("x-a", 1), ends("x-many-0", 2), ends("x-many-1", 3))(c)
			c.step()
			isDeleted(tc.deleted)(c)
			c.step()
			ends("x-slow", 4)(c)
			c.step()
			c.step()
			if c.children["x-b"] != nil {
				ends("x-b", 1)(c)
				c.step()
			}
			if is := runstatus.OutcomeOf(c.run.Status); is.Reason != tc.reason || !strings.Contains(is.Message, tc.message) {
				t.Errorf("the Run is %s: %s", is.Reason, is.Message)
			}
		})
	}
}

// Whatever a child says that it used, sums stay sums, and limits hold.
func TestUsageThatNobodyHas(t *testing.T) {
	says := func(n int64) func(*v1alpha1.RunProgress) {
		return func(p *v1alpha1.RunProgress) {
			p.Counts.Steps, p.Usage.TotalTokens, p.Usage.DurationSeconds, p.Usage.CostMicroUSD = n, n, n, &n
		}
	}
	cases := map[string]struct {
		says []int64
		want int64
	}{
		"less than nothing":     {[]int64{-500, 40}, 40},
		"more than adds up":     {[]int64{math.MaxInt64, math.MaxInt64}, v1alpha1.MaxUsage},
		"the least there is":    {[]int64{math.MinInt64, math.MinInt64}, 0},
		"much beside something": {[]int64{math.MaxInt64, 40}, v1alpha1.MaxUsage},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := begun(t, `
limits: {tokens: 1000}
nodes:
- {name: a, agent: worker, prompt: x, limits: {tokens: 100}}
- {name: b, agent: worker, prompt: x, limits: {tokens: 100}}
- {name: c, agent: worker, prompt: x, dependsOn: [a, b]}
`)
			several(ends("x-a", 1, says(tc.says[0])), ends("x-b", 1, says(tc.says[1])))(c)
			c.step()
			c.step()
			p := c.run.Status.Progress
			counted := min(tc.want, v1alpha1.MaxCount) // as the schema has it
			if p.Counts.Steps != counted || p.Usage.TotalTokens != tc.want || p.Usage.DurationSeconds != counted || *p.Usage.CostMicroUSD != tc.want {
				t.Errorf("told is %+v %+v, want %d of each", p.Counts, p.Usage, tc.want)
			}
			if tc.want > 1000 {
				if is := runstatus.OutcomeOf(c.run.Status); is.Reason != v1alpha1.ReasonTokenLimit || c.made[childKey{"c", 0}] > 0 {
					t.Errorf("and the Run is %+v", is)
				}
			} else if l := c.child("x-c").Spec.Limits; string(*l.Tokens) != fmt.Sprint(1000-tc.want) {
				t.Errorf("and c has %s tokens", *l.Tokens)
			}
		})
	}
}

// No node of a Run that has ended is at work, or waits.
func TestNodesEndWithTheirRun(t *testing.T) {
	cases := map[string]func(*cluster){
		"its version is gone": func(c *cluster) { c.version, c.missing = nil, "it is gone" },
		"a Decision is gone": func(c *cluster) {
			c.run.Status.Progress.Decided = []v1alpha1.DecidedRequest{{Name: "x.approval-x", Request: "approval-x", Type: v1alpha1.DecisionApprove}}
		},
	}
	for name, happens := range cases {
		t.Run(name, func(t *testing.T) {
			c := begun(t, pipeline)
			happens(c)
			c.step()
			a, b := nodeStatus(c.run.Status.Nodes, "a"), nodeStatus(c.run.Status.Nodes, "b")
			if a.State != v1alpha1.NodeFailed || a.Reason != v1alpha1.NodeReasonCancelled || a.FinishedAt == nil || b.State != v1alpha1.NodeNotReached {
				t.Errorf("the Run is %+v, node a %+v and node b %+v", runstatus.OutcomeOf(c.run.Status), a, b)
			}
		})
	}
}
