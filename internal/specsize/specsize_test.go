package specsize_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/specsize"
)

// spec returns one with so many bytes of JSON.
func spec(size int) v1alpha1.ModelSpec {
	around := len(`{"provider":"","modelID":"","inference":{"extra":""}}`)
	return v1alpha1.ModelSpec{Inference: &v1alpha1.Inference{Extra: &runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("x", size-around) + `"`)}}}
}

func TestOnlySpecsAboveTheBoundAreDropped(t *testing.T) {
	for name, tc := range map[string]struct {
		size int
		want string
	}{
		"the bound":        {specsize.Max, ""},
		"a byte above it":  {specsize.Max + 1, "spec has 256 KiB of JSON; at most 256 are allowed, since the operator keeps it in memory. Shorten spec.inference, which has 255 KiB"},
		"what etcd allows": {1500 << 10, "spec has 1500 KiB of JSON; at most 256 are allowed, since the operator keeps it in memory. Shorten spec.inference, which has 1499 KiB"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &v1alpha1.Model{Spec: spec(tc.size)}
			m.Annotations = map[string]string{"example.com/a": "b"}
			specsize.Drop(m, &m.Spec)
			if got := specsize.Dropped(m); got != tc.want {
				t.Errorf("dropped because %q, want %q", got, tc.want)
			}
			if dropped := m.Spec.Inference == nil; dropped != (tc.want != "") {
				t.Errorf("the spec is gone: %t", dropped)
			}
		})
	}
}
