package workflowrun

import (
	"context"
	"fmt"
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/outcome"
)

func (c *cluster) usage() v1alpha1.Usage { return c.run.Status.Progress.Usage }

// A job that deletes what is finished gives no budget back.
func TestDeletedIterationsStayPaid(t *testing.T) {
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
	if is := outcome.Of(c.run.Status); is.Reason != v1alpha1.ReasonTokenLimit {
		t.Errorf("after %d iterations the Run is %+v", len(c.made), is)
	}
	if u := c.usage(); len(c.made) != 4 || u.TotalTokens != 1000 || u.DurationSeconds != 100 || *u.CostMicroUSD != 10_000 {
		t.Errorf("%d iterations used %+v", len(c.made), u)
	}
}

// What a deleted child used is told with what others use after it, and once.
func TestDeletedChildrenStayCounted(t *testing.T) {
	c := begun(t, `
nodes:
- {name: a, agent: worker, prompt: x, forEach: {items: "[1, 2, 3]"}}
- {name: b, agent: worker, prompt: x, dependsOn: [a]}
- {name: c, agent: worker, prompt: x, dependsOn: [b]}
`)
	said := []int64{}
	tell := func() {
		c.step()
		c.step()
		said = append(said, c.usage().TotalTokens)
	}
	several(ends("x-a-0", 1, spends(100)), ends("x-a-1", 1, spends(200)), ends("x-a-2", 1, spends(400)))(c)
	tell()
	several(isDeleted("x-a-0"), isDeleted("x-a-2"))(c)
	tell()
	ends("x-b", 1, spends(1000))(c)
	tell()
	isDeleted("x-b")(c)
	works("x-c", spends(50))(c)
	tell()
	ends("x-c", 1, spends(2000))(c)
	tell()
	if want := []int64{700, 700, 1700, 1700, 3700}; fmt.Sprint(said) != fmt.Sprint(want) {
		t.Errorf("told are %v tokens, want %v", said, want)
	}
	if o := outcome.Of(c.run.Status); o.Reason != v1alpha1.ReasonFinished {
		t.Errorf("the Run is %+v", o)
	}
}

// Of a node that had failed children end that it does not count any more: what is
// lost does not grow with them.
func TestLossOfANodeThatHasEnded(t *testing.T) {
	c := begun(t, `nodes: [{name: a, agent: worker, prompt: x, forEach: {items: "[1, 2, 3]"}}]`)
	for _, name := range []string{"x-a-1", "x-a-2"} {
		fails(name, v1alpha1.ReasonStopped, "Stopped", spends(100))(c)
	}
	isDeleted("x-a-0")(c)
	c.run.Status.Progress.Usage.TotalTokens = 500
	a := nodeStatus(c.run.Status.Nodes, "a")
	a.State, a.Counts = v1alpha1.NodeFailed, &v1alpha1.NodeCounts{Total: 3, Started: 3, Failed: 1}
	if l := lossOf(c.world()); l.progress.Usage.TotalTokens != 300 || l.missing["a"] != 1 {
		t.Errorf("lost are %d tokens of %v", l.progress.Usage.TotalTokens, l.missing)
	}
}

func TestWhoPaysForTheDeleted(t *testing.T) {
	spec := `
limits: {tokens: 1000, cost: 1USD}
finallyLimits: {tokens: 200, cost: 0.2USD}
nodes: [{name: a, agent: worker, prompt: x, limits: {tokens: 500, cost: 0.3USD}}]
finally: [{name: f, agent: writer, prompt: x, limits: {tokens: 60, cost: 0.1USD}}]
`
	both := map[string]int{"a": 1, "f": 1}
	cases := map[string]struct {
		loss          loss
		main, finally int64
		by            dimension
	}{
		"others":                                  {lossOfTokens(map[string]int{"a": 1}, 400), 400, 0, byTokens},
		"finally alone pays all":                  {lossOfTokens(map[string]int{"f": 1}, 70), 0, 70, byTokens},
		"finally pays what it set aside":          {lossOfTokens(both, 400), 340, 60, byTokens},
		"and no more than was used":               {lossOfTokens(both, 40), 0, 40, byTokens},
		"without a price what was set aside, all": {loss{missing: both, unpriced: true}, 300_000, 100_000, byCost},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			main, finally := &purse{}, &purse{}
			tc.loss.pay(newCluster(whole(t, spec)).world(), main, finally)
			if main.used[tc.by] != tc.main || finally.used[tc.by] != tc.finally {
				t.Errorf("the main nodes pay %d and finally %d, want %d and %d", main.used[tc.by], finally.used[tc.by], tc.main, tc.finally)
			}
		})
	}
}

func lossOfTokens(missing map[string]int, n int64) loss {
	return loss{missing: missing, progress: v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: n}}}
}

// What nobody knew the price of before it was deleted has none after.
func TestDeletedWithoutAPriceStaysSo(t *testing.T) {
	c := begun(t, pipeline)
	ends("x-a", 1, spends(10), func(p *v1alpha1.RunProgress) { p.Usage.CostMicroUSD = nil })(c)
	c.step()
	isDeleted("x-a")(c)
	c.step()
	ends("x-b", 1, spends(10))(c)
	c.step()
	if u := c.usage(); u.CostMicroUSD != nil || u.TotalTokens != 20 {
		t.Errorf("told is %+v", u)
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
		"more than adds up":     {[]int64{math.MaxInt64, math.MaxInt64}, 1 << 50},
		"the least there is":    {[]int64{math.MinInt64, math.MinInt64}, 0},
		"much beside something": {[]int64{math.MaxInt64, 40}, 1 << 50},
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
			if p.Counts.Steps != tc.want || p.Usage.TotalTokens != tc.want || p.Usage.DurationSeconds != tc.want || *p.Usage.CostMicroUSD != tc.want {
				t.Errorf("told is %+v %+v, want %d of each", p.Counts, p.Usage, tc.want)
			}
			if tc.want > 1000 {
				if is := outcome.Of(c.run.Status); is.Reason != v1alpha1.ReasonTokenLimit || c.made[place{"c", 0}] > 0 {
					t.Errorf("and the Run is %+v", is)
				}
			} else if l := c.child("x-c").Spec.Limits; string(*l.Tokens) != fmt.Sprint(1000-tc.want) {
				t.Errorf("and c has %s tokens", *l.Tokens)
			}
		})
	}
}

// A server counts how often it is asked for all children.
type server struct {
	client.Reader
	*cluster
	lists int
}

func (s *server) List(_ context.Context, l client.ObjectList, _ ...client.ListOption) error {
	s.lists++
	for _, c := range s.children {
		l.(*metav1.PartialObjectMetadataList).Items = append(l.(*metav1.PartialObjectMetadataList).Items, metav1.PartialObjectMetadata{ObjectMeta: c.ObjectMeta})
	}
	return nil
}

// That a child is gone the API server is asked once, and again when another is.
func TestAbsencesAreConfirmedOnce(t *testing.T) {
	c := begun(t, `
nodes:
- {name: a, agent: worker, prompt: x, forEach: {items: "[1, 2, 3]"}}
- {name: b, agent: worker, prompt: x, dependsOn: [a]}
`)
	s := &server{cluster: c}
	r := &Reconciler{live: s, absences: &absences{}}
	several(ends("x-a-0", 1), ends("x-a-1", 1), ends("x-a-2", 1))(c)
	c.step()
	looks := func(what string, late bool, lists int) {
		t.Helper()
		for range 5 {
			if is, err := r.late(t.Context(), c.world()); is != late || err != nil {
				t.Fatalf("%s: late is %t (%v), want %t", what, is, err, late)
			}
		}
		if s.lists != lists {
			t.Errorf("%s: it listed %d times, want %d", what, s.lists, lists)
		}
		s.lists = 0
	}
	looks("all are there", false, 0)
	isDeleted("x-a-1")(c)
	looks("one is deleted", false, 1)
	isDeleted("x-a-2")(c)
	looks("another is", false, 1)
	c.hidden["x-a-0"] = true
	looks("one is there, and not seen", true, 5)
	r.absences.forget(c.run.UID)
	delete(c.hidden, "x-a-0")
	looks("it was forgotten", false, 1)
}

func TestAbsencesAreBounded(t *testing.T) {
	a := &absences{}
	gone := []place{{"a", 0}}
	for i := range maxAbsences + 10 {
		a.put(types.UID(fmt.Sprint(i)), gone)
	}
	last := types.UID(fmt.Sprint(maxAbsences + 9))
	if len(a.all) != maxAbsences || !a.known(last, gone) || a.known(last, []place{{"a", 1}}) {
		t.Errorf("%d Runs are remembered, and the last one: %t", len(a.all), a.known(last, gone))
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
				t.Errorf("the Run is %+v, node a %+v and node b %+v", outcome.Of(c.run.Status), a, b)
			}
		})
	}
}
