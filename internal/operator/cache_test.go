package operator

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// Users may write every kind that is cached, so none is cached as it is.
func TestEveryKindThatIsCachedIsReduced(t *testing.T) {
	scheme, err := Scheme()
	if err != nil {
		t.Fatal(err)
	}
	reduced := map[string]bool{}
	for o, of := range cacheOptions(nil, "").ByObject {
		if of.Transform == nil {
			t.Errorf("%T has no transform", o)
			continue
		}
		reduced[reflect.TypeOf(o).Elem().Name()] = true
		large := o.DeepCopyObject()
		labels := map[string]string{}
		for i := range 100 {
			labels[fmt.Sprintf("example.com/%d", i)] = "a"
		}
		named, _ := large.(client.Object)
		named.SetLabels(labels)
		named.SetAnnotations(map[string]string{"example.com/a": strings.Repeat("x", 1000)})
		if pod, is := large.(*corev1.Pod); is {
			pod.Spec.Containers = []corev1.Container{{}} // every pod has one
		}
		kept, err := of.Transform(large)
		if err != nil {
			t.Fatal(err)
		}
		is, _ := kept.(client.Object)
		if len(is.GetLabels()) > 80 || len(is.GetAnnotations()) > 0 {
			t.Errorf("of a %T the cache keeps %d labels and %d annotations of users", o, len(is.GetLabels()), len(is.GetAnnotations()))
		}
	}
	for kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		if isStored := scheme.Recognizes(v1alpha1.GroupVersion.WithKind(kind + "List")); isStored && !reduced[kind] {
			t.Errorf("%s has no transform", kind)
		}
	}
}
