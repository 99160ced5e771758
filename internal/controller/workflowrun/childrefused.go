package workflowrun

import (
	"errors"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// refusalOf returns the refusal for an error of creating a child Run; false: the API server did not refuse it.
func refusalOf(err error) (refusal, bool) {
	if taken, is := errors.AsType[*children.NamesTakenError](err); is {
		return refusal{reason: v1alpha1.NodeReasonRefused, text: taken.Error() + "; delete those, or give this Run another name"}, true
	}
	switch apierr.Classify(err) {
	case apierr.None, apierr.Transient, apierr.Conflict:
		return refusal{}, false
	case apierr.Forbidden, apierr.NotFound: // this says nothing about the node
		return waitingRefusal(err), true
	case apierr.Quota:
		return refusal{v1alpha1.ReasonQuotaExceeded, "The namespace's ResourceQuota has no room for another Run. Raise it, or wait until other Runs end: " + causeText(err), v1alpha1.ReasonQuotaExceeded}, true
	case apierr.Terminating:
		return refusal{reason: v1alpha1.NodeReasonRefused, text: "the namespace is being deleted"}, true
	default:
		return refusal{reason: v1alpha1.NodeReasonRefused, text: "the API server refused its Run: " + causeText(err)}, true
	}
}

// causeText returns the API server's error without the description of the request.
func causeText(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		err = cause
	}
	return apierr.Text(err)
}

// waitingRefusal is the refusal of a request that is sent again until it succeeds.
func waitingRefusal(err error) refusal {
	return refusal{graph.ReasonQueued, task.Cut(apierr.Describe(err), runstatus.MaxCause), v1alpha1.ReasonPending}
}

// retried returns a refusal whose request is sent again; false: there is none. If there are several, it is always the
// same one.
func (e *evaluation) retried() (refusal, bool) {
	var all []refusal
	for _, r := range e.refused {
		if r.waits != "" {
			all = append(all, r)
		}
	}
	if len(all) == 0 {
		return refusal{}, false
	}
	return slices.MinFunc(all, func(a, b refusal) int { return strings.Compare(a.text, b.text) }), true
}
