package workflowrun

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A world is everything that one decision may depend on, read once, the time
// included.
type world struct {
	run *v1alpha1.Run
	// version is what the Run runs, program the same to be asked; nil: there is
	// none, and obstacle says why.
	version  *workflow.Version
	program  *workflow.Program
	obstacle string
	// unsupported is why this operator does not understand the version; nil: it does.
	unsupported *stored.UnsupportedError
	// children are the Run's own. They are the cache's: nobody may change them.
	children []*v1alpha1.Run
	// late: the cache does not show all children yet.
	late bool
	// decisions are what people decided on this Run, oldest first; unproven is one
	// that was acted on and is not there, or says something else.
	decisions []v1alpha1.Decision
	unproven  string
	// claims are what children share, and busy those that a pod still works on.
	claims []corev1.PersistentVolumeClaim
	busy   map[string]bool
	// refused is what the cluster said of children that it did not take.
	refused map[place]refusal
	// failure is a request that failed; nil: none did.
	failure *requestFailure
	// above: the Run that this one, finished, is a part of is active.
	above bool
	// unguarded names the admission policies that are missing.
	unguarded string
	now       time.Time
}

// A place is where a child is in a Workflow: a node and, of items and iterations,
// which one.
type place struct {
	node   string
	number int
}

// begun says whether the Run has a version to run.
func (w world) begun() bool { return w.run.Status.WorkflowRevision != "" }

// wantsPause says whether a person holds the Run.
func (w world) wantsPause() bool { return w.run.Spec.DesiredState == v1alpha1.DesiredPaused }

// nodes are those of the Workflow, finally's last.
func (w world) nodes() []v1alpha1.Node {
	return slices.Concat(w.version.Spec.Nodes, w.version.Spec.Finally)
}

// final says whether a node is one of finally.
func (w world) final(node string) bool {
	for i := range w.version.Spec.Finally {
		if w.version.Spec.Finally[i].Name == node {
			return true
		}
	}
	return false
}

// recorded is what the status remembers of how it is going to end; nil: nothing.
func (w world) recorded() *v1alpha1.Result {
	if p := w.run.Status.Progress; p != nil {
		return p.Result
	}
	return nil
}

// pending is what people are asked, as it is recorded.
func (w world) pending() []v1alpha1.PendingRequest {
	if p := w.run.Status.Progress; p != nil {
		return p.Pending
	}
	return nil
}

// decided is what was acted on, as it is recorded.
func (w world) decided() []v1alpha1.DecidedRequest {
	if p := w.run.Status.Progress; p != nil {
		return p.Decided
	}
	return nil
}

// sooner is the lesser of two wakes, where 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
