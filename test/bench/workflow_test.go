//go:build bench

package bench

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// chained is how many nodes, or Runs, come one after the other, and rounds how
// often each is measured.
const chained, rounds = 10, 3

// A workflow whose nodes come one after the other is as fast as who creates one
// Run when the last has ended.
func TestTenNodesOverTenRuns(t *testing.T) {
	r := newFixture(t)
	w := &v1alpha1.Workflow{ObjectMeta: r.meta("chain"), Spec: v1alpha1.WorkflowSpec{Order: v1alpha1.OrderSequential}}
	for n := range chained {
		w.Spec.Nodes = append(w.Spec.Nodes, v1alpha1.Node{Name: fmt.Sprintf("n%d", n), Agent: "trivial", Prompt: "Say it."})
	}
	r.create(w)
	r.run(-1) // what is made once is made now
	var one, other []time.Duration
	for n := range rounds {
		one = append(one, r.oneByOne(n))
		other = append(other, r.chain(n))
	}
	slices.Sort(one)
	slices.Sort(other)
	runs, nodes := one[rounds/2], other[rounds/2]
	fmt.Printf("%d trivial Runs one after another %s, a workflow of %d such nodes %s, ratio %.2f (medians of %d)\n", chained, runs.Round(time.Millisecond), chained, nodes.Round(time.Millisecond), float64(nodes)/float64(runs), rounds)
	fmt.Printf("  Runs      %v\n  workflows %v\n", rounded(one), rounded(other))
	r.print("BenchmarkTenNodesOverTenRuns %d %.0f nodes-ms %.0f runs-ms", ms(nodes), ms(runs))
}

// oneByOne is the time that Runs take, each created when a watcher saw the last
// one end.
func (r *fixture) oneByOne(round int) time.Duration {
	begin := time.Now()
	for n := range chained {
		r.run(100*(round+1) + n)
	}
	return time.Since(begin)
}

// chain is the same of a workflow's Run.
func (r *fixture) chain(round int) time.Duration {
	run := &v1alpha1.Run{ObjectMeta: r.meta(fmt.Sprintf("chain-%d", round)), Spec: v1alpha1.RunSpec{Workflow: "chain"}}
	d := r.until(run, &v1alpha1.RunList{}, func(o client.Object) bool {
		seen, is := o.(*v1alpha1.Run)
		return is && seen.Name == run.Name && seen.Status.CompletionTime != nil
	})
	var seen v1alpha1.Run
	r.get(run, &seen)
	for _, n := range seen.Status.Nodes {
		if n.State != v1alpha1.NodeSucceeded {
			r.t.Fatalf("node %s of Run %s is %s: %s", n.Name, run.Name, n.State, n.Reason)
		}
	}
	return d
}
