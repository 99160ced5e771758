package apierr

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

var errChanged = errors.New("it has changed since it was read")

// Changed returns the conflict of a request about an object of Deckhand that has changed since
// it was read. Its kind is, for example, Run.
func Changed(kind, name string) error {
	resource := v1alpha1.GroupVersion.WithResource(strings.ToLower(kind) + "s")
	return apierrors.NewConflict(resource.GroupResource(), name, errChanged)
}

// CheckUnchanged returns a conflict if an object of Deckhand is no more what was read of it: a
// cache may have an old copy. live reads from the API server itself.
func CheckUnchanged(ctx context.Context, live client.Reader, kind string, read client.Object) error {
	var now metav1.PartialObjectMetadata
	now.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(kind))
	if err := live.Get(ctx, client.ObjectKeyFromObject(read), &now); err != nil {
		return fmt.Errorf("getting %s %s: %w", kind, read.GetName(), err)
	}
	if now.UID != read.GetUID() || now.ResourceVersion != read.GetResourceVersion() {
		return Changed(kind, read.GetName())
	}
	return nil
}
