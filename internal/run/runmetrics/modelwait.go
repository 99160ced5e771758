package runmetrics

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// countModelWait counts the wait for a model that ended between two reports of a Run: with an
// answer, or with the Run.
func countModelWait(before, after any, now time.Time) {
	was, isRun := before.(*v1alpha1.Run)
	is, alsoRun := after.(*v1alpha1.Run)
	if !isRun || !alsoRun {
		return
	}
	wait := modelWaitOf(was)
	if wait == nil {
		return
	}
	var end time.Time
	switch still := modelWaitOf(is); {
	case is.Status.CompletionTime != nil:
		end = is.Status.CompletionTime.Time
	case still != nil && still.Since.Equal(&wait.Since), is.Status.Progress == nil:
		return
	default:
		end = time.UnixMilli(is.Status.Progress.Sequence)
	}
	if created := was.CreationTimestamp.Time; !untrusted.IsTime(wait.Since.Time, created, now) || !untrusted.IsTime(end, created, now) {
		return
	}
	ns := namespaceLabel(is.Namespace)
	agent, model := agentLabel(ns, is), other
	if len(validation.IsDNS1123Subdomain(wait.Model)) == 0 { // a runner may write anything
		model = modelLabel(ns, agent, wait.Model)
	}
	modelWaits.add(end.Sub(wait.Since.Time).Seconds(), ns, agent, model)
}

// modelWaitOf returns the wait of a Run that is active; nil: it waits for no model.
func modelWaitOf(run *v1alpha1.Run) *v1alpha1.ModelWait {
	if run.Status.CompletionTime != nil || run.Status.Progress == nil {
		return nil
	}
	return run.Status.Progress.ModelWait
}
