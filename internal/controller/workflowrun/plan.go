package workflowrun

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A plan is what to do next, as data, with reason and message of the Run. A plan without a reason keeps the current
// ones.
type plan struct {
	runstatus.Outcome

	storeRevision *workflow.Revision            // store this revision, and begin with it
	setStates     []children.StateChange        // stop, pause or resume these children
	create        []newChild                    // make these children
	own           []*v1alpha1.Decision          // make the Run an owner of these Decisions
	deleteVolume  *corev1.PersistentVolumeClaim // delete this claim
	deleteRun     bool                          // delete the Run

	// reusedProgress is the progress of a Run that has the result of another.
	reusedProgress *v1alpha1.RunProgress

	progress     *progress     // how far the nodes came; nil: as they were
	pendingSince *metav1.Time  // since when all child Runs are refused; nil: they are not
	wake         time.Duration // look again after this; 0: when something changes
}

// newChild is a child Run to create.
type newChild struct {
	childKey
	children.Child
}

// A progress is the progress of the nodes, in the form of the status.
type progress struct {
	nodes   []v1alpha1.NodeStatus
	pending []v1alpha1.PendingRequest
	decided []v1alpha1.DecidedRequest
	result  *v1alpha1.Result
}

// A refusal is the API server's answer to a child Run that it does not create.
type refusal struct {
	reason string // of the node
	text   string
	// waits is the reason of the Run until it is requested again; empty: the node fails.
	waits string
}

// waiting returns a plan that only reports why the Run waits.
func waiting(reason, message string, wake time.Duration) plan {
	return plan{Outcome: runstatus.Outcome{Status: metav1.ConditionUnknown, Reason: reason, Message: message}, wake: wake}
}

// failure returns a plan that ends the Run without success.
func failure(reason, message string) plan {
	return plan{Outcome: runstatus.Outcome{Status: metav1.ConditionFalse, Reason: reason, Message: task.Cut(message, task.MaxMessage)}}
}
