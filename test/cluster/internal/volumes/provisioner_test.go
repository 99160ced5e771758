package volumes

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// A claim gets a volume with a folder; when the claim is gone, both are.
func TestPass(t *testing.T) {
	client := fake.NewClientset()
	claims, volumes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil), cache.NewIndexer(cache.MetaNamespaceKeyFunc, nil)
	var log bytes.Buffer
	w := &worker{
		site:   site{nodes: []string{"other", "node"}, dir: t.TempDir()},
		client: client, claims: listers.NewPersistentVolumeClaimLister(claims), volumes: listers.NewPersistentVolumeLister(volumes),
		log: &log,
	}
	if err := claims.Add(claim()); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second look sees no more than the first
		if err := w.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	made, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-123", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, made.Name)); err != nil {
		t.Errorf("its folder: %v", err)
	}
	if err := claims.Delete(claim()); err != nil {
		t.Fatal(err)
	}
	made.Status.Phase = corev1.VolumeReleased
	if err := volumes.Add(made); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := w.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-123", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the volume: %v", err)
	}
	if _, err := os.Stat(filepath.Join(w.dir, made.Name)); !os.IsNotExist(err) {
		t.Errorf("the folder: %v", err)
	}
	if got, want := log.String(), "created pvc-123 for demo/work, 64Mi\nremoved pvc-123\nremoved pvc-123\n"; got != want {
		t.Errorf("the log is\n%swant\n%s", got, want)
	}
}
