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
// with their pods and without, and how it takes them up after a restart.
func (s *scale) memory() {
	s.t.Helper()
	finished, active := scaled(10000, 100), scaled(1000, 10)
	s.agent("active", "0s", 24*time.Hour)
	s.agent("kept", "24h", 0)
	before := s.operatorRestarts()

	filling := s.sample()
	span := s.begin()
	s.createRuns("active", active, "active")
	s.tally.await("all active Runs have pods", func(c counts) bool { return c.pods == active+1 })
	begun := time.Now()
	s.createRuns("kept", finished, "kept")
	took := s.tally.await("all Runs end", func(c counts) bool { return c.terminal == finished+1 }).Sub(begun)
	s.settle()
	filled := filling.stop()
	fmt.Printf("%d finished Runs in %s beside %d active ones: RSS at most %.0f MiB, at the end %.0f MiB, live heap %.0f MiB\n",
		finished, took.Round(time.Second), active, filled.peak, filled.last.rss, filled.last.live)
	if s.operatorRestarts() == before {
		span.end()
		fmt.Printf("  %s\n", span.describe(finished+active))
	}

	kept := s.restart("kept-restart")
	s.settle()
	keptAtRest := s.mem()
	s.removeKeptPods(finished)
	removed := s.restart("removed-restart")
	s.settle()
	removedAtRest := s.mem()
	s.tally.mustSucceed()

	s.printOf(finished, "BenchmarkScaleMemory/filling %d %.0f peak-MiB %d finished %d active", filled.peak, finished, active)
	s.printOf(finished, "BenchmarkScaleMemory/kept %d %.0f RSS-MiB %.0f live-MiB %d finished %d active", keptAtRest.rss, keptAtRest.live, finished, active)
	s.printOf(finished, "BenchmarkScaleMemory/removed %d %.0f RSS-MiB %.0f live-MiB %d finished %d active", removedAtRest.rss, removedAtRest.live, finished, active)
	s.printOf(finished, "BenchmarkScaleRestart/kept %d %.0f first-pod-ms %.0f peak-MiB %d finished %d active", ms(kept.first), kept.peak, finished, active)
	s.printOf(finished, "BenchmarkScaleRestart/removed %d %.0f first-pod-ms %.0f peak-MiB %d finished %d active", ms(removed.first), removed.peak, finished, active)
	if killed := s.operatorRestarts() - before; killed > 0 {
		s.t.Errorf("the operator's container ended %d times by itself: %s", killed, s.lastWords())
	}
}

// restarted is what came of a restart.
type restarted struct {
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
	fmt.Printf("%s: first pod of a new Run after %s, all %d ended after %s, RSS at most %.0f MiB\n", prefix, first.Round(time.Millisecond), n, all.Round(time.Millisecond), seen.peak)
	return restarted{first: first, peak: seen.peak}
}

// removeKeptPods deletes the pods of finished Runs, and waits until they are gone.
func (s *scale) removeKeptPods(n int) {
	s.t.Helper()
	kept := []client.DeleteAllOfOption{client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelAgent: "kept"}}
	if err := s.client.DeleteAllOf(s.t.Context(), &corev1.Pod{}, kept...); err != nil {
		s.t.Fatal(err)
	}
	for {
		var left corev1.PodList
		if err := s.client.List(s.t.Context(), &left, client.InNamespace(s.namespace), client.MatchingLabels{v1alpha1.LabelAgent: "kept"}, client.Limit(1)); err != nil {
			s.t.Fatal(err)
		}
		if len(left.Items) == 0 {
			return
		}
		select {
		case <-time.After(time.Second):
		case <-s.t.Context().Done():
			s.t.Fatalf("%d pods do not go", n)
		}
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

func (s *scale) mem() heap {
	s.t.Helper()
	return heapOf(s.operatorMetrics())
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
