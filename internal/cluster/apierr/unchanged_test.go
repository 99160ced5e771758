package apierr_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
)

// An old copy of an object is a conflict, like that of a write with its resource version.
func TestCheckUnchanged(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "x", UID: "u", ResourceVersion: "7"}}
	live := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
	cases := map[string]struct {
		change func(*v1alpha1.Run)
		want   apierr.Class
	}{
		"as it was read":         {func(*v1alpha1.Run) {}, apierr.None},
		"it has changed":         {func(r *v1alpha1.Run) { r.ResourceVersion = "6" }, apierr.Conflict},
		"another with this name": {func(r *v1alpha1.Run) { r.UID = "v" }, apierr.Conflict},
		"it is gone":             {func(r *v1alpha1.Run) { r.Name = "y" }, apierr.NotFound},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			read := stored.DeepCopy()
			tc.change(read)
			if err := apierr.CheckUnchanged(t.Context(), live, "Run", read); apierr.Classify(err) != tc.want {
				t.Errorf("CheckUnchanged() = %v", err)
			}
		})
	}
}
