//go:build bench

package bench

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// writes is what one patch of a status costs the API server: of a Run, of its pod, and of
// a bare pod to compare with. The operator is away, so that nothing else is counted but
// the watch of the tally.
func (s *scale) writes() {
	s.t.Helper()
	n := scaled(1000, 50)
	s.agent("kept", "1h", 0)
	s.createRuns("written", 1, "kept")
	s.flood(1, func(i int) client.Object { return s.barePod(i) })
	s.tally.await("a Run and a bare pod end", func(c counts) bool { return c.terminal == 2 && c.runBarePod == 1 })
	s.settle()
	back := s.stopOperator()
	defer back()
	pod := &corev1.Pod{}
	s.get(&corev1.Pod{ObjectMeta: s.meta("written-0-1")}, pod)
	stored, err := json.Marshal(pod)
	if err != nil {
		s.t.Fatal(err)
	}
	const (
		resumed = `{"status":{"internal":{"resumedAt":"2030-01-01T00:00:%02dZ"}}}`
		ready   = `{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2030-01-01T00:00:%02dZ"}]}}`
	)
	run := s.patchCPU(n, &v1alpha1.Run{ObjectMeta: s.meta("written-0")}, types.MergePatchType, resumed)
	ofRun := s.patchCPU(n, &corev1.Pod{ObjectMeta: s.meta("written-0-1")}, types.StrategicMergePatchType, ready)
	bare := s.patchCPU(n, &corev1.Pod{ObjectMeta: s.meta("bare-0")}, types.StrategicMergePatchType, ready)
	s.printOf(n, "BenchmarkScaleWrites %d %.2f Run-CPU-ms %.2f pod-CPU-ms %.2f bare-pod-CPU-ms %d pod-B", run, ofRun, bare, len(stored))
}

// patchCPU is how much CPU the API server needs for one patch of a status, in
// milliseconds: a mean of n, after some that are not counted.
func (s *scale) patchCPU(n int, o client.Object, kind types.PatchType, body string) float64 {
	s.t.Helper()
	patch := func(times int) {
		for i := range times {
			data := fmt.Appendf(nil, body, i%60)
			if err := s.client.Status().Patch(s.t.Context(), o, client.RawPatch(kind, data)); err != nil {
				s.t.Fatalf("patching the status of %s: %v", o.GetName(), err)
			}
		}
	}
	patch(n / 5)
	before := s.serverMetrics().sum(cpuSeconds)
	patch(n)
	return (s.serverMetrics().sum(cpuSeconds) - before) * 1000 / float64(n)
}
