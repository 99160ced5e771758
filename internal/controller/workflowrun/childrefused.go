package workflowrun

import (
	"errors"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/children"
)

var errChanged = errors.New("it has changed since it was read")

// refusalOf says what follows when the cluster does not take a child; false: that
// says nothing about the Run, and is tried again.
func refusalOf(err error) (refusal, bool) {
	if err == nil {
		return refusal{}, false
	}
	if taken, is := errors.AsType[*children.NamesTakenError](err); is {
		return refusal{v1alpha1.NodeReasonRefused, taken.Error() + "; delete those, or give this Run another name"}, true
	}
	text := apierr.Text(err)
	switch apierr.Classify(err) {
	case apierr.None, apierr.Transient, apierr.Conflict, apierr.Forbidden, apierr.NotFound:
		return refusal{}, false // it says nothing about the node: the Run waits
	case apierr.Quota:
		return refusal{v1alpha1.ReasonQuotaExceeded, "The namespace's ResourceQuota has no room for another Run. Raise it, or wait until other Runs end: " + text}, true
	case apierr.Terminating:
		return refusal{v1alpha1.NodeReasonRefused, "the namespace is being deleted"}, true
	default:
		return refusal{v1alpha1.NodeReasonRefused, "the API server refused its Run: " + text}, true
	}
}
