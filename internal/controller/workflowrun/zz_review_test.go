package workflowrun

import (
	"fmt"
	"strings"
	"testing"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestReviewFan(t *testing.T) {
	items := make([]string, 490)
	for i := range items {
		items[i] = fmt.Sprintf("%q", fmt.Sprint(i))
	}
	c := newCluster(whole(t, `
parameters: [{name: files, type: List}]
nodes:
- name: each
  agent: worker
  prompt: "look at ${{ item }}"
  forEach: {items: parameters.files, maxParallel: 100}
  onFailure: Continue
- {name: sum, agent: writer, prompt: "${{ nodes.each.?output.orValue([]).filter(i, i.hasValue()).size() }}"}
`), func(r *v1alpha1.Run) {
		r.Spec.Parameters = &k8sruntime.RawExtension{Raw: []byte(`{"files":[` + strings.Join(items, ",") + `]}`)}
	})
	pad := strings.Repeat("x", 11<<10)
	for steps := 0; len(c.children) < 491 && steps < 100; steps++ {
		c.step()
		for name, ch := range c.children {
			if !finished(ch) && strings.Contains(name, "each") {
				ends(name, 1, func(p *v1alpha1.RunProgress) {
					p.Result.Output = fmt.Sprintf(`{"n":1,"pad":"%s"}`, pad)
					p.Result.Text = pad[:8<<10]
				})(c)
			}
		}
	}
	t.Logf("children %d nodes %+v", len(c.children), c.run.Status.Nodes[0].Reason)
	measure := func(what string) {
		r := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			w := c.world()
			for b.Loop() {
				decide(w)
			}
		})
		t.Logf("%s: %s %s", what, r, r.MemString())
	}
	measure("sum runs")
	n := nodeStatus(c.run.Status.Nodes, "sum")
	*n = v1alpha1.NodeStatus{Name: "sum", State: v1alpha1.NodeWaiting}
	delete(c.children, "x-sum")
	measure("sum begins")
	e := nodeStatus(c.run.Status.Nodes, "each")
	e.State = v1alpha1.NodeRunning
	e.FinishedAt = nil
	e.Counts.Started, e.Counts.Succeeded = 400, 399
	for i := 400; i < 490; i++ {
		delete(c.children, fmt.Sprintf("x-each-%d", i))
	}
	measure("64 begin")
}
