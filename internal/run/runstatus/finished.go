package runstatus

import (
	"errors"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// IgnoreFinished returns nil for an error that says that the desired state of a Run was not
// changed because the Run is gone or has finished. A cache can be late: there is nothing
// left to stop or pause.
func IgnoreFinished(err error) error {
	if status, is := errors.AsType[*apierrors.StatusError](err); is && apierrors.IsInvalid(err) && status.Status().Details != nil &&
		slices.ContainsFunc(status.Status().Details.Causes, func(c metav1.StatusCause) bool { return c.Field == "spec.desiredState" }) {
		return nil
	}
	return client.IgnoreNotFound(err)
}

// IsFinished reports whether a Run has ended.
func IsFinished(run *v1alpha1.Run) bool { return run.Status.CompletionTime != nil }
