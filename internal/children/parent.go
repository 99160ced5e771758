package children

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// ParentOf returns the Run that another is a part of; nil: there is none. An admission policy
// keeps users from creating Runs that name a parent.
func ParentOf(run *v1alpha1.Run) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.Kind != "Run" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return nil
	}
	return owner
}
