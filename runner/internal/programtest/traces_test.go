package programtest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// BenchmarkTenThousandTracedSteps is the CPU time of the program for one step with traces and
// without, the least of interleaved runs: other work on the machine only adds to it. A step is a model call over HTTP and a file that is read.
func BenchmarkTenThousandTracedSteps(b *testing.B) {
	const steps, pairs = 1000, 7
	var received atomic.Int64
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		received.Add(n)
	}))
	defer collector.Close()
	traced := func(t *task.Task) { t.Traces = &task.Traces{Endpoint: collector.URL, Metrics: true} }
	var with, without []time.Duration
	for b.Loop() {
		for range pairs {
			without = append(without, marathonOf(b, steps).busy)
			with = append(with, marathonOf(b, steps, traced).busy)
		}
	}
	if received.Load() == 0 {
		b.Fatal("no spans came")
	}
	b.ReportMetric(slices.Min(with).Seconds()*1000/steps, "with-cpu-ms/step")
	b.ReportMetric(slices.Min(without).Seconds()*1000/steps, "without-cpu-ms/step")
}
