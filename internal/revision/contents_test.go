package revision

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestContentsAreOfOneObjectAndBounded(t *testing.T) {
	c := newContents(3, 1<<20)
	object := func(name string) *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "a", ResourceVersion: "1"}}
	}
	for i := range 5 {
		c.keep(&corev1.ConfigMap{ObjectMeta: object(fmt.Sprint(i)).ObjectMeta})
	}
	for i := range 5 {
		if got := c.read(object(fmt.Sprint(i)), &corev1.ConfigMap{}); got != (i >= 2) {
			t.Errorf("%d is kept: %t", i, got)
		}
	}
	restored := object("4") // an API server that was restored counts its versions again
	restored.UID = "b"
	if c.read(restored, &corev1.ConfigMap{}) {
		t.Error("the content is that of another object")
	}
}
