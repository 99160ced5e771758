package specsize_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
	"github.com/deckhand-dev/deckhand/runner/task"
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

func TestTheLargestFieldIsNamed(t *testing.T) {
	const kib = 1 << 10
	text := func(kibs int) string { return strings.Repeat("x", kibs*kib) }
	for name, tc := range map[string]struct {
		spec any
		want string // at the end
	}{
		"the second":      {map[string]string{"a": text(100), "b": text(200), "c": text(1)}, "Shorten spec.b, which has 200 KiB"},
		"the first":       {map[string]string{"a": text(200), "b": text(100)}, "Shorten spec.a, which has 200 KiB"},
		"of two, by name": {map[string]string{"b": text(150), "a": text(150), "c": text(150)}, "Shorten spec.a, which has 150 KiB"},
		"a long name":     {map[string]string{strings.Repeat("n", 100): text(300)}, "Shorten spec." + task.Cut(strings.Repeat("n", 100), 64) + ", which has 300 KiB"},
		"no JSON":         {map[string]any{"a": text(300), "b": func() {}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := specsize.Problem(tc.spec); !strings.HasSuffix(got, tc.want) || (got == "") != (tc.want == "") {
				t.Errorf("%q, want %q at its end", got, tc.want)
			}
		})
	}
}
