//go:build bench

package bench

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
)

// writes is what one patch costs the API server while many are sent at once, as in a burst of Runs: of
// the status of a Run, of its pod and of a bare pod, and of a small ConfigMap, to compare with. The
// patches of a Run are the two that a trivial one gets: its result, by the runner, and its end, by the
// operator. The operator is away, so that nothing else is counted but the watch of the tally.
func (s *scale) writes() {
	s.t.Helper()
	const objects = 4 * writers // so that few patches of one object meet
	n := scaled(2000, objects)
	s.agent("kept", "1h", 0)
	s.createRuns("written", objects, "kept")
	s.flood(objects, func(i int) client.Object { return s.barePod(i) })
	s.flood(objects, func(i int) client.Object {
		return &corev1.ConfigMap{ObjectMeta: s.meta(fmt.Sprintf("small-%d", i)), Data: map[string]string{"key": "value"}}
	})
	s.tally.await("Runs and bare pods end", func(c counts) bool { return c.terminal == objects+1 && c.runBarePod == objects })
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
		ready   = `{"status":{"conditions":[{"type":"Ready","status":"False","lastTransitionTime":"2030-01-01T00:%02d:%02dZ"}]}}`
		changed = `{"data":{"key":"%02d:%02d"}}`
	)
	status := func(o client.Object, p client.Patch) error { return s.client.Status().Patch(s.t.Context(), o, p) }
	data := func(o client.Object, p client.Patch) error { return s.client.Patch(s.t.Context(), o, p) }
	patches := func(body string, kind types.PatchType, send func(client.Object, client.Patch) error, of func(name int) client.Object) float64 {
		return s.serverCPU(n, func(i int) error {
			return send(of(i%objects), client.RawPatch(kind, fmt.Appendf(nil, body, i/objects/60%60, i/objects%60)))
		})
	}
	ofRun := patches(ready, types.StrategicMergePatchType, status, func(i int) client.Object {
		return &corev1.Pod{ObjectMeta: s.meta(fmt.Sprintf("written-%d-1", i))}
	})
	bare := patches(ready, types.StrategicMergePatchType, status, func(i int) client.Object {
		return &corev1.Pod{ObjectMeta: s.meta(fmt.Sprintf("bare-%d", i))}
	})
	small := patches(changed, types.MergePatchType, data, func(i int) client.Object {
		return &corev1.ConfigMap{ObjectMeta: s.meta(fmt.Sprintf("small-%d", i))}
	})
	result, end := s.patchesOfRuns(n)
	s.printOf(n, "BenchmarkScaleWrites %d %.2f Run-CPU-ms %.2f result-CPU-ms %.2f end-CPU-ms %.2f pod-CPU-ms %.2f bare-pod-CPU-ms %.2f ConfigMap-CPU-ms %d pod-B",
		(result+end)/2, result, end, ofRun, bare, small, len(stored))
}

// patchesOfRuns is what the two patches of a trivial Run cost. Each is sent once to each of n Runs and
// some more, with the content that it had for a Run that has done its work.
func (s *scale) patchesOfRuns(n int) (result, end float64) {
	s.t.Helper()
	s.createRuns("fresh", warmed(n), "kept")
	var fresh, done v1alpha1.Run
	s.get(&v1alpha1.Run{ObjectMeta: s.meta("fresh-0")}, &fresh)
	s.get(&v1alpha1.Run{ObjectMeta: s.meta("written-0")}, &done)
	reported := fresh.Status
	reported.Progress = done.Status.Progress
	patch := func(had, want v1alpha1.RunStatus, tests ...statuspatch.Op) float64 {
		return s.serverCPU(n, func(i int) error {
			run := &v1alpha1.Run{ObjectMeta: s.meta(fmt.Sprintf("fresh-%d", i))}
			p, err := statuspatch.Diff(had, want, append(tests, statuspatch.Same("/metadata/name", run.Name))...)
			if err != nil {
				return err
			}
			return s.client.Status().Patch(s.t.Context(), run, p)
		})
	}
	result = patch(fresh.Status, reported, statuspatch.Same("/status/attempt", nil))
	end = patch(reported, done.Status, statuspatch.Same("/metadata/generation", done.Generation), statuspatch.Same("/status/attempt", nil))
	return result, end
}

// warmed is how many requests are sent to measure n: some before are not counted.
func warmed(n int) int { return n + n/5 }

// serverCPU is how much CPU the API server needs for one of n requests, of which several are sent
// at once, in milliseconds; some before are not counted.
func (s *scale) serverCPU(n int, request func(int) error) float64 {
	s.t.Helper()
	first := warmed(n) - n
	s.eachOf(first, request)
	before := s.serverMetrics().sum(cpuSeconds)
	s.eachOf(n, func(i int) error { return request(first + i) })
	return (s.serverMetrics().sum(cpuSeconds) - before) * 1000 / float64(n)
}
