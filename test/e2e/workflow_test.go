//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// newHarbor is a namespace with a scripted server of its own, and for each of its
// models an Agent of that name, which can count at the server.
func newHarbor(t *testing.T, models map[string]modeltest.Dialogue) *exampleFixture {
	t.Helper()
	p := newNamespace(t)
	if err := serve(t.Context(), p.name, modeltest.Script{Key: key, Models: models}, nil); err != nil {
		t.Fatal(err)
	}
	p.create(counterTools())
	for name := range models {
		if strings.Contains(name, "?") {
			continue // one for some requests
		}
		agent := counterAgent(name)
		agent.Spec.Workspace = v1alpha1.Workspace{}
		p.create(modelOf(name, func(m *v1alpha1.Model) { m.Spec.Endpoint = "http://" + modelsName + "/" + name }), agent)
	}
	return &exampleFixture{testNamespace: p, runs: map[string]*v1alpha1.Run{}}
}

// counterAgent is an Agent on a volume that can count, and may work for long.
func counterAgent(name string) *v1alpha1.Agent {
	a := agentOnVolume(name, v1alpha1.Tool{Toolset: "counter"})
	a.Spec.Sandbox, a.Spec.Retention.Pod, a.Spec.Limits.Steps = nil, "0s", new(int32(1000))
	return a
}

// hand is a model that counts what it is told to, then says it.
var hand = turns(does(call("counter__add", args{"id": "{{.LastUserMessage}}"})), says("{{.LastUserMessage}}"))

// long is a model that works for as long as it is let.
var long = modeltest.Dialogue{Turns: endlessTurns(400)}

// looksAround is a model that looks around, for at least 0.6 s in each turn: an answer with
// a call has six chunks.
func looksAround(turns int) modeltest.Dialogue {
	return modeltest.Dialogue{Turns: append(looks(turns, 100), says("All quiet."))}
}

// workflow makes a Workflow of what people write.
func (s *exampleFixture) workflow(name, spec string) *v1alpha1.Workflow {
	s.t.Helper()
	w := &v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := yaml.UnmarshalStrict([]byte(spec), &w.Spec); err != nil {
		s.t.Fatalf("reading Workflow %s: %v", name, err)
	}
	s.create(w)
	return w
}

// start starts a Run of a Workflow, under its name.
func (s *exampleFixture) start(workflow string, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	s.t.Helper()
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: workflow}, Spec: v1alpha1.RunSpec{Workflow: workflow}}
	for _, mod := range mods {
		mod(run)
	}
	s.create(run)
	return run
}

// settles waits for the end of a Run, which must be as wanted, and keeps it for
// what is asked of it.
func (s *exampleFixture) settles(run *v1alpha1.Run, want string) *v1alpha1.Run {
	s.t.Helper()
	s.runs[run.Name] = s.ends(run, want)
	return s.runs[run.Name]
}

// named is a Run of the namespace, to be waited for.
func (s *exampleFixture) named(name string) *v1alpha1.Run {
	return &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: s.name, Name: name}}
}

// awaitRunner waits until the runner of a Run has taken a step.
func (s *exampleFixture) awaitRunner(name string) *v1alpha1.Run {
	s.t.Helper()
	var seen v1alpha1.Run
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKey{Namespace: s.name, Name: name}, &seen)
		return err == nil && seen.Status.Progress != nil && seen.Status.Progress.Counts.Steps > 0, client.IgnoreNotFound(err)
	})
	if err != nil {
		s.t.Fatalf("Run %s never worked (%s): %v", name, succeeded(&seen), err)
	}
	return &seen
}

// checkEffectsOnce checks that each of the effects happened once, and no others.
func (s *exampleFixture) checkEffectsOnce(want ...string) {
	s.t.Helper()
	counts := s.countEffects("")
	for _, id := range want {
		if counts[id] != 1 {
			s.t.Errorf("%s happened %d times", id, counts[id])
		}
		delete(counts, id)
	}
	if len(counts) > 0 {
		s.t.Errorf("this happened too: %v", counts)
	}
}

// numberedNames are names with a prefix and a number.
func numberedNames(prefix string, from, to int) []string {
	var all []string
	for n := from; n <= to; n++ {
		all = append(all, fmt.Sprintf("%s-%d", prefix, n))
	}
	return all
}

// checkNodeCounts checks the counts of a node.
func (s *exampleFixture) checkNodeCounts(run, node string, want v1alpha1.NodeCounts) {
	s.t.Helper()
	got := s.node(run, node).Counts
	if got == nil || *got != want {
		s.t.Errorf("node %s counts %+v, want %+v", node, got, want)
	}
}

// childrenOnDistinctItems checks that each child has its own node and item, and returns all children.
func (s *exampleFixture) childrenOnDistinctItems(run string) map[string]*v1alpha1.Run {
	s.t.Helper()
	children, places := s.childrenByName(run), map[string]string{}
	for name, kid := range children {
		at := fmt.Sprint(kid.Labels[v1alpha1.LabelWorkflowNode], kid.Labels[v1alpha1.LabelItemIndex], kid.Labels[v1alpha1.LabelIteration])
		if other, there := places[at]; there {
			s.t.Errorf("Runs %s and %s are the same piece of work", name, other)
		}
		places[at] = name
	}
	return children
}

// awaitNoRuns waits until neither Runs nor pods of them are left.
func (s *exampleFixture) awaitNoRuns() {
	s.t.Helper()
	var left []string
	err := until(s.t.Context(), func(ctx context.Context) (bool, error) {
		left = nil
		var runs v1alpha1.RunList
		var pods corev1.PodList
		if err := cluster.admin.List(ctx, &runs, client.InNamespace(s.name)); err != nil {
			return false, err
		}
		if err := cluster.admin.List(ctx, &pods, client.InNamespace(s.name), client.HasLabels{v1alpha1.LabelRun}); err != nil {
			return false, err
		}
		for i := range runs.Items {
			left = append(left, "Run "+runs.Items[i].Name)
		}
		for i := range pods.Items {
			left = append(left, "Pod "+pods.Items[i].Name)
		}
		return len(left) == 0, nil
	})
	if err != nil {
		slices.Sort(left)
		s.t.Errorf("these stay: %v: %v", left, err)
	}
}
