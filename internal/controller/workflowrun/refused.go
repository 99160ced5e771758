package workflowrun

import (
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
)

var errMoved = errors.New("it has changed since it was read")

// A takenError is a child whose names others have.
type takenError struct{ names [2]string }

func (e *takenError) Error() string {
	return fmt.Sprintf("the names %s and %s are those of Runs that are not part of this one; delete those, or give this Run another name", e.names[0], e.names[1])
}

// refused says what follows when the cluster does not take a child; false: that
// says nothing about the Run, and is tried again.
func refused(err error) (refusal, bool) {
	if err == nil {
		return refusal{}, false
	}
	if taken, is := errors.AsType[*takenError](err); is {
		return refusal{v1alpha1.NodeReasonRefused, taken.Error()}, true
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
