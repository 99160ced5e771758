package volumes

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var here = site{nodes: []string{"other", "node"}, dir: "/volumes"}

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		claim  func(*corev1.PersistentVolumeClaim)
		volume func(*corev1.PersistentVolume) // nil: there is none
		want   string
	}{
		"a claim whose pod was scheduled here gets a volume": {want: "create"},
		"a claim that nobody uses waits":                     {claim: func(c *corev1.PersistentVolumeClaim) { c.Annotations = nil }},
		"a claim of another class is not ours":               {claim: func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = new("fast") }},
		"a claim without a class is not ours":                {claim: func(c *corev1.PersistentVolumeClaim) { c.Spec.StorageClassName = nil }},
		"a claim that is bound has what it needs":            {claim: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeName = "x" }},
		"a claim of blocks gets nothing":                     {claim: func(c *corev1.PersistentVolumeClaim) { c.Spec.VolumeMode = new(corev1.PersistentVolumeBlock) }},
		"a claim that picks by labels gets nothing":          {claim: func(c *corev1.PersistentVolumeClaim) { c.Spec.Selector = &metav1.LabelSelector{} }},
		"a claim that is going gets nothing":                 {claim: func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }},
		"a claim whose volume was made is not bound yet":     {volume: func(*corev1.PersistentVolume) {}},
		"a volume whose claim is gone goes":                  {volume: release, want: "remove"},
		"a volume that is to stay stays": {volume: func(v *corev1.PersistentVolume) {
			release(v)
			v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
		}},
		"a volume of somebody else stays": {volume: func(v *corev1.PersistentVolume) { release(v); v.Annotations = nil }},
		"a volume that is going already":  {volume: func(v *corev1.PersistentVolume) { release(v); v.DeletionTimestamp = &metav1.Time{} }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := claim()
			var volumes []*corev1.PersistentVolume
			if tc.volume != nil {
				volumes = append(volumes, here.volume(c))
				tc.volume(volumes[0])
			}
			if tc.claim != nil {
				tc.claim(c)
			}
			p := here.decide([]*corev1.PersistentVolumeClaim{c}, volumes)
			got := ""
			if len(p.create) > 0 {
				got += "create"
			}
			if len(p.remove) > 0 {
				got += "remove"
			}
			if got != tc.want {
				t.Errorf("decide() = %q, want %q", got, tc.want)
			}
		})
	}
}

// A volume is bound to its claim alone, and to the node that has it.
func TestVolume(t *testing.T) {
	c := claim()
	v := here.volume(c)
	if v.Name != "pvc-123" || v.Spec.Local.Path != "/volumes/pvc-123" {
		t.Errorf("it is %s at %s", v.Name, v.Spec.Local.Path)
	}
	if r := v.Spec.ClaimRef; r.Namespace != "demo" || r.Name != "work" || r.UID != "123" {
		t.Errorf("it is for %+v", r)
	}
	if terms := v.Spec.NodeAffinity.Required.NodeSelectorTerms; len(terms) != 1 || !slices.Equal(terms[0].MatchExpressions[0].Values, []string{"node"}) {
		t.Errorf("it is on %+v", terms)
	}
	if got := v.Spec.Capacity.Storage().String(); got != "64Mi" {
		t.Errorf("its size is %s", got)
	}
	if v.Spec.PersistentVolumeReclaimPolicy != corev1.PersistentVolumeReclaimDelete || !slices.Equal(v.Spec.AccessModes, c.Spec.AccessModes) {
		t.Errorf("it is %s, %v", v.Spec.PersistentVolumeReclaimPolicy, v.Spec.AccessModes)
	}
}

func release(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased }

func claim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "demo", Name: "work", UID: "123", Annotations: map[string]string{selectedNode: "node"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			StorageClassName: new(Class),
			AccessModes:      []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")},
			},
		},
	}
}
