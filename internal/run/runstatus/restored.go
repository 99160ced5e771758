package runstatus

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// The labels and annotations by which backup tools mark the objects that they
// create in a cluster. Each is backed by the source of its tool; a tool that marks
// nothing cannot be told from a user. The admission policy child-runs.yaml repeats them.
const (
	// veleroLabel is set on every object that Velero restores, and thus by OADP and
	// the products that build on Velero (pkg/restore/restore.go, addRestoreLabels).
	veleroLabel = "velero.io/restore-name"
	// storkAnnotation is set on every object that Stork (Portworx) migrates to
	// another cluster (pkg/migration/controllers/migration.go, applyResources).
	storkAnnotation = "stork.libopenstorage.org/migrated"
)

// RestoreMark returns the label or annotation by which a backup tool says that it
// created an object, or "" if there is none.
func RestoreMark(object metav1.Object) string {
	switch {
	case object.GetLabels()[veleroLabel] != "":
		return "label " + veleroLabel
	case object.GetAnnotations()[storkAnnotation] != "":
		return "annotation " + storkAnnotation
	}
	return ""
}

// IsRestoreMark reports whether a label or annotation is one of a backup tool. Such
// keys are not copied to the Runs and pods that a Run creates: they would pass for
// restored ones.
func IsRestoreMark(key string) bool {
	return strings.HasPrefix(key, "velero.io/") || strings.HasPrefix(key, "stork.libopenstorage.org/")
}

// IsRestoreLabel reports whether a label marks an object as created by a backup tool if it has
// a value.
func IsRestoreLabel(key string) bool { return key == veleroLabel }

// IsRestoreAnnotation reports whether an annotation marks an object as created by a backup tool
// if it has a value.
func IsRestoreAnnotation(key string) bool { return key == storkAnnotation }

// Restored returns the outcome of a Run that a backup tool created without its
// status; false: no backup tool did. Its work may have been done before the backup.
func Restored(run *v1alpha1.Run) (Outcome, bool) {
	mark := RestoreMark(run)
	if mark == "" {
		return Outcome{}, false
	}
	return Outcome{
		Status:  metav1.ConditionFalse,
		Reason:  v1alpha1.ReasonRestored,
		Message: fmt.Sprintf("Restored from a backup without its status (%s): the work may already be done. To do it again, create a new Run", mark),
	}, true
}
