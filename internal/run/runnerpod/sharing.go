package runnerpod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
)

// SharedVolumeClaim returns the volume that a Run shares with others, and their parent; empty: it shares none. The
// annotation counts only on a Run with a controller.
func SharedVolumeClaim(run *v1alpha1.Run) (claim string, parent *metav1.OwnerReference) {
	claim, parent = run.Annotations[v1alpha1.AnnotationVolumeClaim], children.ParentOf(run)
	if parent == nil || !strings.HasPrefix(claim, VolumeClaimPrefix) {
		return "", nil
	}
	return claim, parent
}

// SharesSource reports whether a Run that has started works on the files of the Run that it continues.
func SharesSource(run *v1alpha1.Run) bool {
	from := run.Spec.ContinueFrom
	return from != nil && from.Workspace == v1alpha1.ContinueShare && run.Status.ContinuedFrom != nil
}

// hasOwnFolder reports whether the state of a Run is in a folder of its own, because other Runs use the same volume.
func hasOwnFolder(run *v1alpha1.Run) bool {
	claim, _ := SharedVolumeClaim(run)
	return claim != "" || SharesSource(run)
}

// MaxOwners is how many Runs can share a volume: as many owners as the operator's cache keeps.
const MaxOwners = 16

// Join returns a patch that adds a Run to the owners of a volume and makes it the user of the files; nil: it is both. The patch fails if the volume has changed, so of two Runs one joins.
func Join(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim) []byte {
	owner := metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID}
	user := run.Name + "/" + string(run.UID)
	if isOwner(run, claim) && claim.Annotations[v1alpha1.AnnotationUsedBy] == user {
		return nil
	}
	owners := slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(o metav1.OwnerReference) bool { return o.UID == run.UID })
	return ToJSON(map[string]any{"metadata": map[string]any{
		"uid": claim.UID, "resourceVersion": claim.ResourceVersion,
		"ownerReferences": append(owners, owner), "annotations": map[string]string{v1alpha1.AnnotationUsedBy: user},
	}})
}

// UserOf returns the Run that uses the files of a volume, or used them last; empty: the Run that made the volume.
func UserOf(claim *corev1.PersistentVolumeClaim) (name string, uid types.UID) {
	name, id, _ := strings.Cut(claim.Annotations[v1alpha1.AnnotationUsedBy], "/")
	return name, types.UID(id)
}

// Owners returns the Runs that a volume is kept for.
func Owners(claim *corev1.PersistentVolumeClaim) []metav1.OwnerReference {
	return slices.DeleteFunc(slices.Clone(claim.OwnerReferences), func(o metav1.OwnerReference) bool {
		return o.Kind != "Run" || !strings.HasPrefix(o.APIVersion, v1alpha1.GroupVersion.Group+"/")
	})
}

// isOwner reports whether a volume is kept for a Run.
func isOwner(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim) bool {
	return slices.ContainsFunc(Owners(claim), func(o metav1.OwnerReference) bool { return o.UID == run.UID && o.Name == run.Name })
}

// VolumeOwner returns the owner of the volume of a Run: its parent if the volume is shared, otherwise the Run.
func VolumeOwner(run *v1alpha1.Run) metav1.OwnerReference {
	if _, parent := SharedVolumeClaim(run); parent != nil {
		return *metav1.NewControllerRef(&metav1.ObjectMeta{Name: parent.Name, UID: parent.UID}, v1alpha1.GroupVersion.WithKind("Run"))
	}
	return *metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))
}

// OwnsVolume reports whether a Run may mount a volume. Another Run may have made it only if its status names it, which
// users do not write, and if the operator joined the Run to it.
func OwnsVolume(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim) bool {
	if SharesSource(run) {
		return claim.Name == run.Status.ContinuedFrom.VolumeClaim && strings.HasPrefix(claim.Name, VolumeClaimPrefix) && isOwner(run, claim)
	}
	is := metav1.GetControllerOf(claim)
	return is != nil && is.UID == VolumeOwner(run).UID
}
