package runnerpod

import (
	"cmp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// VolumeClaimPrefix begins the names of claims. An admission policy knows it: only the
// operator makes such claims, and pods that may write to them.
const VolumeClaimPrefix = "deckhand-run-"

// VolumeClaimName is the name of the volume with the files and the journal of a Run. The UID
// is in it: a Run never gets the volume of another Run of the same name.
func VolumeClaimName(run *v1alpha1.Run) string {
	if claim, _ := SharedVolumeClaim(run); claim != "" {
		return claim
	}
	return volumeClaimName(run.Name, string(run.UID))
}

// volumeClaimName returns a name with a hash of what is unique about the volume.
func volumeClaimName(name, unique string) string {
	hash := "-" + task.Hash([]byte(unique))[:8]
	if most := 63 - len(VolumeClaimPrefix) - len(hash); len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return VolumeClaimPrefix + name + hash
}

// Defaults of Workspace, as its godoc promises.
const (
	defaultSize           = "1Gi"
	defaultClaimRetention = 24 * time.Hour
)

// NewVolumeClaim returns the volume that the current attempt of a Run mounts.
func NewVolumeClaim(in Input) *corev1.PersistentVolumeClaim {
	run, v := in.Run, in.Revision
	ws := v.Agent.Workspace
	retention := defaultClaimRetention
	if ws.Retention != nil {
		retention = ws.Retention.Duration
	}
	mode := cmp.Or(ws.AccessMode, corev1.ReadWriteOnce)
	owner := VolumeOwner(run)
	annotations := map[string]string{
		v1alpha1.AnnotationRetain:    string(ws.Retain),
		v1alpha1.AnnotationRetention: retention.String(),
		v1alpha1.AnnotationFilesPod:  string(ToJSON(filesPodOf(in))),
	}
	if ids := newBuilder(in).userAndGroups(); ids.group != nil { // else it is the choice of the cluster
		annotations[v1alpha1.AnnotationFileOwner] = FileOwner{User: *ids.user, Group: *ids.fsGroup}.String()
	}
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace,
			Name:      run.Status.Attempt.VolumeClaim,
			Labels: map[string]string{
				"app.kubernetes.io/name":       "deckhand-runner",
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelRun:              owner.Name,
				v1alpha1.LabelAgent:            snapshot.Label(v.Agent.Name),
			},
			Annotations:     annotations,
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{mode},
			StorageClassName: ws.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: sizeOf(ws)}},
		},
	}
}

func sizeOf(ws stored.Workspace) resource.Quantity {
	if ws.Size == nil {
		return resource.MustParse(defaultSize)
	}
	return *ws.Size
}

// SharedVolumeClaimName is the name of the volume that children of a Run share whose files
// begin with the node root.
func SharedVolumeClaimName(parent *v1alpha1.Run, root string) string {
	return volumeClaimName(parent.Name, string(parent.UID)+"/"+root)
}

// RetentionExpired reports whether the retention of a volume of a finished Run has passed, or
// how much of it is left. Before it is deleted, it must not be [InUse].
func RetentionExpired(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim, now time.Time) (done bool, left time.Duration) {
	if claim.DeletionTimestamp != nil {
		return false, 0
	}
	switch stored.Retain(claim.Annotations[v1alpha1.AnnotationRetain]) {
	case stored.RetainNever:
		return true, 0
	case stored.RetainAlways:
	case stored.RetainOnFailure:
		if runstatus.OutcomeOf(run.Status).Status == metav1.ConditionTrue {
			return true, 0
		}
	}
	left = Retention(claim, defaultClaimRetention) - runstatus.SinceCompletion(run, now)
	return left <= 0, max(left, 0)
}

// InUse reports whether a pod that may be active mounts a volume.
func InUse(claim string, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return IsAlive(&pod) && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		})
	})
}

// SharedVolumeClaim returns the volume that a Run shares with others, and their parent; empty:
// it shares none. The annotation counts only on a Run that another controls.
func SharedVolumeClaim(run *v1alpha1.Run) (claim string, parent *metav1.OwnerReference) {
	claim, parent = run.Annotations[v1alpha1.AnnotationVolumeClaim], children.ParentOf(run)
	if parent == nil || !strings.HasPrefix(claim, VolumeClaimPrefix) {
		return "", nil
	}
	return claim, parent
}

// VolumeOwner returns the owner of the volume of a Run: its parent if that is shared, else the
// Run.
func VolumeOwner(run *v1alpha1.Run) metav1.OwnerReference {
	if _, parent := SharedVolumeClaim(run); parent != nil {
		return *metav1.NewControllerRef(&metav1.ObjectMeta{Name: parent.Name, UID: parent.UID}, v1alpha1.GroupVersion.WithKind("Run"))
	}
	return *metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))
}

// OwnsVolume reports whether a volume is one that a Run may mount.
func OwnsVolume(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim) bool {
	is := metav1.GetControllerOf(claim)
	return is != nil && is.UID == VolumeOwner(run).UID
}

// Retention is how long something stays after its Run has finished.
func Retention(o client.Object, standard time.Duration) time.Duration {
	d, err := time.ParseDuration(o.GetAnnotations()[v1alpha1.AnnotationRetention])
	if err != nil {
		return standard
	}
	return d
}
