package ready

import (
	"cmp"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A plan is what to do next, as data.
type plan struct {
	conditions []metav1.Condition   // none if the object does not exist
	nodes      int32                // of a Workflow
	prices     v1alpha1.PriceSource // of a Model
	list       *v1alpha1.PriceList  // of prices
	remove     []corev1.ConfigMap
	wake       time.Duration
}

// A result is the result of checking one object.
type result struct {
	ready metav1.Condition
	more  []metav1.Condition
	// revision is the name of the ConfigMap of the current revision, which must be kept; empty: the object is not
	// valid.
	revision string
	nodes    int32                // of a Workflow
	prices   v1alpha1.PriceSource // of a Model
	list     *v1alpha1.PriceList  // of prices
	wake     time.Duration        // check again after this; 0: when something changes
}

// maxMessage is the maximum length of a condition's message in bytes. The API server allows 32 KiB.
const maxMessage = 4 << 10

func (k kind[T, R]) decide(s state[T, R]) plan {
	var p plan
	current, again := "", time.Duration(0)
	if s.exists {
		found := k.check(s.object, s.refs, s.now)
		current, again, p.nodes, p.prices, p.list = found.revision, found.wake, found.nodes, found.prices, found.list
		if s.notDeleted != nil {
			found.ready.Message = task.Cut(found.ready.Message+". "+apierr.Describe(s.notDeleted), maxMessage)
		}
		p.conditions = append(statuspatch.ReadyConditions(found.ready), found.more...)
	}
	p.remove, p.wake = s.revisions.Unneeded(current, s.now)
	p.wake = cmp.Or(p.wake, again) // only Models, which have no revisions, are checked again
	return p
}

// isReady returns the condition Ready=True.
func isReady(message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: task.Cut(message, maxMessage)}
}

// warnings returns the text that is appended to the message of Ready=True.
func warnings(texts []string) string {
	var b strings.Builder
	for _, text := range texts {
		b.WriteString("; " + text)
	}
	return b.String()
}

// notReady returns the condition Ready=False.
func notReady(reason, message string) metav1.Condition {
	return metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: reason, Message: task.Cut(message, maxMessage)}
}

// readyUnless returns the condition Ready=False of a problem; without a problem, Ready=True.
func readyUnless(problem *snapshot.NotReadyError, message string) metav1.Condition {
	if problem != nil {
		return notReady(problem.Reason, problem.Message)
	}
	return isReady(message)
}
