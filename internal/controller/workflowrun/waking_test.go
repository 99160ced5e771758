package workflowrun

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A glance is what there is to watch at one moment.
type glance struct {
	run      *v1alpha1.Run
	children map[string]*v1alpha1.Run
	decided  []v1alpha1.Decision
	missing  string
	before   int // how many Runs of the source have ended
}

func (c *cluster) glance() glance {
	return glance{c.run.DeepCopy(), maps.Clone(c.children), slices.Clone(c.decided), c.missing, c.before.ended()}
}

// stirs says whether what became since a glance wakes the controller: by what it
// has Setup watch.
func (c *cluster) stirs(was glance) bool {
	decided := !equality.Semantic.DeepEqual(was.decided, c.decided)
	workflow := was.missing != c.missing && unbegunByWorkflow(c.run) != nil
	source := was.before != c.before.ended() && unbegunByWorkflow(c.run) != nil
	return decided || workflow || source || c.childrenStir(was) || runChanged.Update(event.UpdateEvent{ObjectOld: was.run, ObjectNew: c.run})
}

func (c *cluster) childrenStir(was glance) bool {
	for name, child := range c.children {
		had := was.children[name]
		switch {
		case !isChildOf(child, c.run):
		case had == nil && childChanged.Create(event.CreateEvent{Object: child}):
			return true
		case had != nil && childChanged.Update(event.UpdateEvent{ObjectOld: had, ObjectNew: child}):
			return true
		}
	}
	for name, child := range was.children {
		if c.children[name] == nil && childChanged.Delete(event.DeleteEvent{Object: child}) {
			return true
		}
	}
	return false
}
