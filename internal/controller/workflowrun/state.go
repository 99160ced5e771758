package workflowrun

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// state is everything that a decision may depend on, read once, with the time.
type state struct {
	run *v1alpha1.Run
	// revision is the revision of the Workflow that the Run runs, and program its compiled form; nil: there is none,
	// and notReadyMessage has the cause.
	revision        *workflow.Revision
	program         *workflow.Program
	notReadyMessage string
	// unsupported is why this operator cannot read the revision; nil: it can.
	unsupported *stored.UnsupportedError
	// source is the Run that this Run retries; nil: it retries none.
	source *source
	// reusedRun is the Run whose result this Run has; nil: it works itself, or that Run was deleted.
	reusedRun *v1alpha1.Run
	// children are its child Runs. They are shared with the cache and must not be changed.
	children []*v1alpha1.Run
	// cacheBehind: the cache does not show all children yet.
	cacheBehind bool
	// decisions are the Decisions on this Run, oldest first, and those of other Runs that it reuses. missingDecision is a Decision that the Run acted on, and
	// that does not exist or has other content.
	decisions       []v1alpha1.Decision
	missingDecision string
	// volumes are the volumes that children share. volumesInUse has the names of the volumes that a pod still uses.
	volumes      []corev1.PersistentVolumeClaim
	volumesInUse map[string]bool
	// volumeUses is how Runs use them that continue children on their files.
	volumeUses map[string]continuing.Use
	// isNeeded: a Run continues this one or one of its children, and has no copy of the files yet.
	isNeeded bool
	// defaultTTL is the TTL of Runs without one; 0: they are kept.
	defaultTTL time.Duration
	// parentIsActive: the Run has finished, and its parent is active.
	parentIsActive bool
	// missingPolicies names the admission policies that are missing. policiesUnknown: the operator has
	// just started and has not checked them.
	missingPolicies string
	policiesUnknown bool
	now             time.Time
	// facts are the results of applying a plan.
	facts
}

// withFacts returns the state after a plan was applied, with the children that it created.
func (s state) withFacts(f facts) state {
	s.facts, s.children = f, append(slices.Clip(s.children), f.created...)
	return s
}

// childKey identifies a child: its node and, if the node has items or iterations, the number of one.
type childKey struct {
	node  string
	index int
}

// hasStarted reports whether the Run has a revision to run.
func (s state) hasStarted() bool { return s.run.Status.WorkflowRevision != "" }

// wantsPause reports whether desiredState is Paused.
func (s state) wantsPause() bool { return s.run.Spec.DesiredState == v1alpha1.DesiredPaused }

// nodes returns the nodes of the Workflow, those of finally last.
func (s state) nodes() []v1alpha1.Node {
	return slices.Concat(s.revision.Spec.Nodes, s.revision.Spec.Finally)
}

// isFinally reports whether a node is one of finally.
func (s state) isFinally(node string) bool {
	for i := range s.revision.Spec.Finally {
		if s.revision.Spec.Finally[i].Name == node {
			return true
		}
	}
	return false
}

// recordedEnd returns how the status records that the Run is going to end, or nil.
func (s state) recordedEnd() *v1alpha1.Result {
	if p := s.run.Status.Progress; p != nil {
		return p.Result
	}
	return nil
}

// pending returns the recorded requests to users.
func (s state) pending() []v1alpha1.PendingRequest {
	if p := s.run.Status.Progress; p != nil {
		return p.Pending
	}
	return nil
}

// decided returns the recorded Decisions that the Run acted on.
func (s state) decided() []v1alpha1.DecidedRequest {
	if p := s.run.Status.Progress; p != nil {
		return p.Decided
	}
	return nil
}

// earlier returns the shorter of two delays, where 0 means never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
