//go:build bench

package bench

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// memory is what the operator holds when many Runs are finished and some active,
// with their pods and without, how it takes them up after a restart, and what a new Run
// costs beside them. Most are copies of a few, which were made while there was no operator.
func (s *scale) memory() {
	s.t.Helper()
	finished, active, burst := scaled(10000, 100), scaled(1000, 10), scaled(200, 20)
	before := s.operatorRestarts()
	alone := s.operatorCost("alone", burst)
	s.populate(finished-burst, active)
	kept := s.restart("kept-restart")
	beside := s.operatorCost("beside", burst)
	s.removeKeptPods()
	removed := s.restart("removed-restart")
	s.tally.mustSucceed()
	s.printOf(burst, "BenchmarkScaleNamespace %d %.1f beside-CPU-ms/Run %.1f alone-CPU-ms/Run", beside, alone)
	s.printOf(finished, "BenchmarkScaleMemory/kept %d %.0f RSS-MiB %.0f live-MiB %d finished %d active", kept.rss, kept.live, finished, active)
	s.printOf(finished, "BenchmarkScaleMemory/removed %d %.0f RSS-MiB %.0f live-MiB %d finished %d active", removed.rss, removed.live, finished, active)
	s.printOf(finished, "BenchmarkScaleRestart/kept %d %.0f first-pod-ms %.0f peak-MiB", ms(kept.first), kept.peak)
	s.printOf(finished, "BenchmarkScaleRestart/removed %d %.0f first-pod-ms %.0f peak-MiB", ms(removed.first), removed.peak)
	if killed := s.operatorRestarts() - before; killed > 0 {
		s.t.Errorf("the operator's container ended %d times by itself: %s", killed, s.lastWords())
	}
}

// operatorCost is the operator's CPU for one of n Runs that are created at once, in milliseconds.
func (s *scale) operatorCost(prefix string, n int) float64 {
	s.t.Helper()
	before := s.tally.now().terminal
	span := s.begin()
	s.createRuns(prefix, n, "brief")
	s.tally.await("new Runs end", func(c counts) bool { return c.terminal == before+n })
	s.settle()
	span.end()
	return span.operatorCPU(n)
}

// restarted is what came of a restart.
type restarted struct {
	heap
	first time.Duration // to the pod of the first new Run
	peak  float64       // of the RSS, in MiB
}

// restart kills the operator and creates Runs at a fixed rate meanwhile.
func (s *scale) restart(prefix string) restarted {
	s.t.Helper()
	n := scaled(50, 10)
	before := s.tally.now()
	pods, err := s.operatorPods(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	memory := s.sample()
	begun := time.Now()
	for i := range pods {
		if err := s.client.Delete(s.t.Context(), &pods[i], client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			s.t.Fatal(err)
		}
	}
	var load sync.WaitGroup
	load.Go(func() {
		s.pace(n, time.Second/10, func(i int) client.Object { return s.newRun(prefix, i, "brief") })
	})
	first := s.tally.await("a pod of a new Run", func(c counts) bool { return c.pods > before.pods }).Sub(begun)
	load.Wait()
	all := s.tally.await("all new Runs end", func(c counts) bool { return c.terminal == before.terminal+n }).Sub(begun)
	s.settle()
	seen := memory.stop()
	fmt.Printf("%s: first pod of a new Run after %s, all %d ended after %s, RSS at most %.0f MiB, at the end %.0f MiB\n",
		prefix, first.Round(time.Millisecond), n, all.Round(time.Millisecond), seen.peak, seen.last.rss)
	return restarted{heap: seen.last, first: first, peak: seen.peak}
}

// removeKeptPods deletes the pods of finished Runs, and waits until they are gone.
func (s *scale) removeKeptPods() {
	s.t.Helper()
	of := client.MatchingLabels{v1alpha1.LabelAgent: "kept"}
	if err := s.deleteAll(s.t.Context(), &corev1.Pod{}, &corev1.PodList{}, of); err != nil {
		s.t.Fatal(err)
	}
}

// operatorRestarts is how often containers of the operator's pods ended by
// themselves.
func (s *scale) operatorRestarts() int {
	s.t.Helper()
	pods, err := s.operatorPods(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	n := 0
	for i := range pods {
		for _, c := range pods[i].Status.ContainerStatuses {
			n += int(c.RestartCount)
		}
	}
	return n
}

func (s *scale) lastWords() string {
	pods, err := s.operatorPods(s.t.Context())
	if err != nil || len(pods) == 0 || len(pods[0].Status.ContainerStatuses) == 0 {
		return "nothing is known"
	}
	return fmt.Sprintf("%+v", pods[0].Status.ContainerStatuses[0].LastTerminationState.Terminated)
}

// A heap is the operator's memory at one time, in MiB.
type heap struct{ rss, live float64 }

func heapOf(m metrics) heap {
	const mib = 1 << 20
	return heap{rss: m.sum("process_resident_memory_bytes") / mib, live: m.sum("go_gc_heap_live_bytes") / mib}
}

// A sampler reads the operator's memory four times a second.
type sampler struct {
	cancel context.CancelFunc
	done   chan sampled
}

type sampled struct {
	last heap
	peak float64 // of the RSS
}

func (s *scale) sample() *sampler {
	ctx, cancel := context.WithCancel(s.t.Context())
	r := &sampler{cancel: cancel, done: make(chan sampled, 1)}
	go func() {
		var seen sampled
		tick := time.NewTicker(250 * time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil {
			if m, err := s.scrapeOperator(ctx); err == nil { // between two pods there is none
				seen.last = heapOf(m)
				seen.peak = max(seen.peak, seen.last.rss)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		r.done <- seen
	}()
	return r
}

func (r *sampler) stop() sampled {
	r.cancel()
	return <-r.done
}
