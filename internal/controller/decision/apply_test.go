package decision

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// The cache has only a part of the owners of a Decision and of its metadata. What it does not have
// stays when the Run becomes an owner.
func TestOtherOwnersOfADecisionStay(t *testing.T) {
	other := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: name, UID: "other"}
	}
	cases := map[string]struct {
		stored, cached []metav1.OwnerReference
		changed        bool
	}{
		"it has none":                        {nil, nil, false},
		"the cache has all":                  {[]metav1.OwnerReference{other("a")}, []metav1.OwnerReference{other("a")}, false},
		"the cache has some":                 {[]metav1.OwnerReference{other("a"), other("b")}, []metav1.OwnerReference{other("b")}, false},
		"the cache is older than the owners": {[]metav1.OwnerReference{other("a")}, nil, true},
		"the cache is older than the object": {[]metav1.OwnerReference{other("a")}, []metav1.OwnerReference{other("a")}, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run, d := runWithQuestion(), answering("s3c1")
			d.UID, d.OwnerReferences, d.Annotations = "decision-uid", tc.stored, map[string]string{"example.com/a": "b"}
			c := apierrtest.NewServer(t, []client.Object{run, d})
			var seen v1alpha1.Decision
			get := func() {
				t.Helper()
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(d), &seen); err != nil {
					t.Fatal(err)
				}
			}
			get()
			cached := seen.DeepCopy()
			cached.OwnerReferences, cached.Annotations = tc.cached, nil
			if tc.changed {
				cached.ResourceVersion = "1"
			}
			r := New(c, c, events.NewFakeRecorder(10), func() time.Time { return gen.Noon })
			if _, err := r.Reconcile(t.Context(), cached); apierrors.IsConflict(err) != tc.changed || (err != nil) != tc.changed {
				t.Fatal(err)
			}
			get()
			want := tc.stored
			if !tc.changed {
				want = append(slices.Clip(want), metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID})
			}
			if diff := cmp.Diff(want, seen.OwnerReferences); diff != "" || seen.Annotations["example.com/a"] != "b" {
				t.Errorf("annotations %v, owners -want +got:\n%s", seen.Annotations, diff)
			}
		})
	}
}
