// Package specsize bounds the specs that the operator keeps in memory. The schemas of Agent, Model, Toolset, Workflow
// and Schedule have fields without a bound (JSON schemas, pod templates, parameters of a provider), so that only etcd,
// at 1.5 MiB, bounds their specs. Larger specs than [Max] are not kept.
package specsize

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Max is the maximum size of a spec as JSON, in bytes.
const Max = 256 << 10

// annotation is set only in the operator's cache, which keeps no annotations of users for these kinds.
const annotation = "deckhand.dev/dropped-spec"

// Problem returns why a spec is not used; empty: it has at most [Max] bytes of JSON.
func Problem(spec any) string {
	data, err := json.Marshal(spec)
	if err != nil || len(data) <= Max {
		return "" // what has no JSON does not come from the API server
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(data, &fields) // a spec is an object
	largest := slices.MaxFunc(slices.Sorted(maps.Keys(fields)), func(a, b string) int { return cmp.Compare(len(fields[a]), len(fields[b])) })
	return fmt.Sprintf("spec has %d KiB of JSON; at most %d are allowed, since the operator keeps it in memory. Shorten spec.%s, which has %d KiB",
		len(data)>>10, Max>>10, task.Cut(largest, 64), len(fields[largest])>>10)
}

// Drop empties the spec of an object that is not used, and records why.
func Drop[T any](o metav1.Object, spec *T) {
	if problem := Problem(spec); problem != "" {
		*spec = *new(T)
		o.SetAnnotations(map[string]string{annotation: problem})
	}
}

// Dropped returns why the spec of an object was dropped; empty: it was not.
func Dropped(o metav1.Object) string { return o.GetAnnotations()[annotation] }
