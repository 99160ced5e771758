package workflowrun

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// begun is a Run whose first children work.
func begun(t *testing.T, spec string) *cluster {
	t.Helper()
	c := newCluster(whole(t, spec))
	c.step() // it begins
	c.step() // with its first children
	for name := range c.children {
		works(name)(c)
	}
	c.step()
	return c
}

func (c *cluster) state(name string) v1alpha1.DesiredState { return c.child(name).Spec.DesiredState }

func TestChildrenGoOnWhoseTellerDied(t *testing.T) {
	c := begun(t, pipeline)
	wants(v1alpha1.DesiredPaused)(c)
	c.acted() // and before it reports, the operator dies
	if is := c.state("x-a"); is != v1alpha1.DesiredPaused {
		t.Fatalf("x-a is to be %s", is)
	}
	wants(v1alpha1.DesiredRunning)(c)
	c.step()
	if is := c.state("x-a"); is != v1alpha1.DesiredRunning {
		t.Errorf("the Run goes on, and x-a is to be %s", is)
	}
}

func TestChildThatAPersonPausedStaysSo(t *testing.T) {
	c := begun(t, pipeline)
	c.child("x-a").Spec.DesiredState = v1alpha1.DesiredPaused
	for _, state := range []v1alpha1.DesiredState{v1alpha1.DesiredPaused, v1alpha1.DesiredRunning} {
		wants(state)(c)
		c.step()
	}
	if is := c.state("x-a"); is != v1alpha1.DesiredPaused {
		t.Errorf("x-a is to be %s", is)
	}
}

func TestRefusedChildStopsTheOthersSoon(t *testing.T) {
	c := begun(t, `
nodes:
- {name: long, agent: worker, prompt: "go"}
- {name: a, agent: worker, prompt: "go"}
- {name: b, agent: worker, prompt: "go", dependsOn: [a]}
`)
	ends("x-a", 1)(c)
	refuses(forbids("a policy says no"))(c)
	p := c.step()
	if n := nodeStatus(c.run.Status.Nodes, "b"); n.State != v1alpha1.NodeFailed {
		t.Fatalf("node b is %s", n.State)
	}
	if p.wake == 0 || p.wake > nextBatchDelay {
		t.Errorf("it is looked at again after %s, and nothing else wakes it", p.wake)
	}
	c.step()
	if is := c.state("x-long"); is != v1alpha1.DesiredStopped {
		t.Errorf("x-long is to be %s", is)
	}
}
