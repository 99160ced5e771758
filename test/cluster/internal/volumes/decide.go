package volumes

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Class is the name of the StorageClass, which is the default one.
const Class = "standard"

// provisioner is the name of this provisioner in claims and volumes.
const provisioner = "deckhand.test/volumes"

// enforceSize is set to "true" on a claim whose size is to be enforced, and copied to its volume.
const enforceSize = "deckhand.test/enforce-size"

// Annotations that Kubernetes and all its provisioners agree on.
const (
	selectedNode  = "volume.kubernetes.io/selected-node"
	provisionedBy = "pv.kubernetes.io/provisioned-by"
	defaultClass  = "storageclass.kubernetes.io/is-default-class"
)

// class returns the StorageClass of this provisioner.
func class() *storagev1.StorageClass {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingWaitForFirstConsumer
	return &storagev1.StorageClass{
		ObjectMeta:        metav1.ObjectMeta{Name: Class, Annotations: map[string]string{defaultClass: "true"}},
		Provisioner:       provisioner,
		ReclaimPolicy:     &reclaim,
		VolumeBindingMode: &binding,
	}
}

// A plan lists the volumes to create and to remove.
type plan struct {
	create []*corev1.PersistentVolume
	remove []*corev1.PersistentVolume
}

// decide compares claims with volumes.
func (s site) decide(claims []*corev1.PersistentVolumeClaim, volumes []*corev1.PersistentVolume) plan {
	var p plan
	for _, c := range claims {
		made := func(v *corev1.PersistentVolume) bool { return v.Name == nameFor(c) }
		if s.wanted(c) && !slices.ContainsFunc(volumes, made) {
			p.create = append(p.create, s.volume(c))
		}
	}
	for _, v := range volumes {
		if unwanted(v) {
			p.remove = append(p.remove, v)
		}
	}
	return p
}

// wanted reports whether a claim needs a volume of this provisioner: its pod was scheduled to a node of s, and it has
// no volume yet.
func (s site) wanted(c *corev1.PersistentVolumeClaim) bool {
	block := c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock
	return c.Spec.StorageClassName != nil && *c.Spec.StorageClassName == Class &&
		slices.Contains(s.nodes, c.Annotations[selectedNode]) && c.Spec.VolumeName == "" &&
		c.Spec.Selector == nil && c.DeletionTimestamp == nil && !block
}

// unwanted reports whether a volume is to be removed: this provisioner made it, and its claim was deleted.
func unwanted(v *corev1.PersistentVolume) bool {
	return v.Annotations[provisionedBy] == provisioner && v.DeletionTimestamp == nil &&
		v.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete &&
		v.Status.Phase == corev1.VolumeReleased
}

// nameFor returns the name of a claim's volume. It is unique, because another claim of the same name has another UID.
func nameFor(c *corev1.PersistentVolumeClaim) string { return "pvc-" + string(c.UID) }

// volume returns the volume for a claim. It names the claim, so that no other claim is bound to it, and the node, so
// that its pods are scheduled nowhere else.
func (s site) volume(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolume {
	name := nameFor(c)
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: provisioner}},
		Spec: corev1.PersistentVolumeSpec{
			StorageClassName: Class,
			AccessModes:      c.Spec.AccessModes,
			Capacity:         corev1.ResourceList{corev1.ResourceStorage: c.Spec.Resources.Requests[corev1.ResourceStorage]},
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: c.Namespace, Name: c.Name, UID: c.UID,
			},
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				Local: &corev1.LocalVolumeSource{Path: s.folder(name)},
			},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{
					Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{c.Annotations[selectedNode]},
				}}}},
			}},
		},
	}
	if c.Annotations[enforceSize] == "true" {
		v.Annotations[enforceSize] = "true"
	}
	return v
}
