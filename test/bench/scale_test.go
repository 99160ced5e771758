//go:build bench

package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/test/simnode"
)

// simulated is the name of the simulated node.
const simulated = "deckhand-bench"

// workLabel says how long a pod works.
const workLabel = "bench.test/work"

// scaled is n at the percentage of BENCH_SCALE_PERCENT, and at least least.
func scaled(n, least int) int {
	percent, err := strconv.Atoi(fallback("BENCH_SCALE_PERCENT", "100"))
	if err != nil || percent < 1 {
		fmt.Fprintln(os.Stderr, "BENCH_SCALE_PERCENT is no percentage; measuring all")
		percent = 100
	}
	return max(n*percent/100, least)
}

// At scale, pods run on a simulated node: nothing but their containers is simulated.
func TestScale(t *testing.T) {
	startNode(t)
	for _, part := range []struct {
		name    string
		measure func(*scale)
	}{
		{"throughput", (*scale).throughput},
		{"latency", (*scale).latency},
		{"writes", (*scale).writes},
		{"workflow", (*scale).workflow},
		{"schedules", (*scale).schedules},
		{"memory", (*scale).memory},
	} {
		t.Run(part.name, func(t *testing.T) { part.measure(newScale(t)) })
	}
}

// startNode runs the simulated node until the test has cleaned up.
func startNode(t *testing.T) {
	t.Helper()
	failed := make(chan error, 1)
	node, err := simnode.New(connect(t).config, simnode.Options{
		Name: simulated,
		Work: func(p *corev1.Pod) time.Duration { d, _ := time.ParseDuration(p.Labels[workLabel]); return d },
		Failed: func(err error) {
			select {
			case failed <- err:
			default:
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	if err := node.Start(ctx); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		if err := node.Remove(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
		select {
		case err := <-failed:
			t.Errorf("the simulated node, the first error: %v", err)
		default:
		}
	})
}

// A scale is a namespace whose pods are simulated, with a tally of them.
type scale struct {
	*fixture
	tally *tally
}

func newScale(t *testing.T) *scale {
	t.Helper()
	s := &scale{fixture: connect(t)}
	s.tally = newTally(s.fixture)
	t.Cleanup(s.clear)
	s.create(&v1alpha1.Model{ObjectMeta: s.meta("simulated"), Spec: v1alpha1.ModelSpec{
		Provider: v1alpha1.ProviderOpenAICompatible, ModelID: "simulated", Endpoint: "http://model.invalid/v1",
	}})
	s.agent("brief", "0s", 0)
	s.createRuns("first", 1, "brief") // what is made once is made now
	s.tally.await("a first Run ends", func(c counts) bool { return c.terminal == 1 })
	<-time.After(2 * time.Second) // and its event written
	return s
}

// agent creates an Agent whose pods go to the simulated node and work that long.
func (s *scale) agent(name string, retention v1alpha1.Duration, work time.Duration) {
	s.t.Helper()
	var labels map[string]string
	if work > 0 {
		labels = map[string]string{workLabel: work.String()}
	}
	s.create(&v1alpha1.Agent{ObjectMeta: s.meta(name), Spec: v1alpha1.AgentSpec{
		Instructions: "Say one word.", Model: "simulated", Retention: v1alpha1.Retention{Pod: retention},
		PodTemplate: &v1alpha1.PodTemplate{
			Labels:       labels,
			NodeSelector: simnode.Selector(simulated), Tolerations: simnode.Tolerations(),
		},
	}})
}

// clear deletes what was made and waits until it is gone: pods need the simulated
// node to go, and what goes would weigh on what is measured next.
func (s *scale) clear() {
	ctx := context.WithoutCancel(s.t.Context())
	err := errors.Join(
		s.deleteAll(ctx, &v1alpha1.Schedule{}, &v1alpha1.ScheduleList{}),
		s.deleteAll(ctx, &v1alpha1.Run{}, &v1alpha1.RunList{}),
		s.deleteAll(ctx, &corev1.Pod{}, &corev1.PodList{}),
	)
	if err != nil {
		s.t.Error(err)
	}
}

// deleteAll deletes objects of one kind and waits until they are gone. It asks again,
// because the API server gives up on a large collection after a minute.
func (s *scale) deleteAll(ctx context.Context, kind client.Object, left client.ObjectList, which ...client.ListOption) error {
	which = append(which, client.InNamespace(s.namespace), client.Limit(1))
	all := (&client.ListOptions{}).ApplyOptions(which)
	all.Limit = 0
	var last error
	err := wait.PollUntilContextTimeout(ctx, 500*time.Millisecond, 15*time.Minute, true, func(ctx context.Context) (bool, error) {
		if last = s.client.DeleteAllOf(ctx, kind, &client.DeleteAllOfOptions{ListOptions: *all}); last != nil {
			return false, nil //nolint:nilerr // it is told when the time is up
		}
		if last = s.client.List(ctx, left, which...); last != nil {
			return false, nil //nolint:nilerr // the same
		}
		return meta.LenList(left) == 0, nil
	})
	if err != nil {
		return fmt.Errorf("deleting all %T of namespace %s: %w (%w)", kind, s.namespace, err, last)
	}
	return nil
}

// throughput is how fast Runs end that were all created at once, beside bare pods on the same
// node, and what each costs. The pods of both stay. Half of the bare pods come before the Runs
// and half after them, because the speed of a machine changes.
func (s *scale) throughput() {
	s.t.Helper()
	n := scaled(1000, 20)
	s.agent("keeps", "1h", 0)
	s.createRuns("warm", n/10, "keeps")
	s.tally.await("the Runs before end", func(c counts) bool { return c.terminal == n/10+1 })
	pods := s.barePods(0, n/2)

	span, patches, checks := s.begin(), s.statusPatches(), s.checks()
	begun := time.Now()
	s.createRuns("run", n, "keeps")
	runs := s.tally.await("all Runs end", func(c counts) bool { return c.terminal == n/10+n+1 }).Sub(begun)
	s.settle()
	span.end()
	patches, checks = (s.statusPatches()-patches)/float64(n), (s.checks()-checks)/float64(n)
	pods += s.barePods(n/2, n)
	s.tally.mustSucceed()
	settled := s.settledOnce()
	toPod := s.tally.durations("run-", n, untilPod)

	fmt.Printf("%d bare pods in %s, %d Runs in %s; %s\n", n, pods.Round(time.Millisecond), n, runs.Round(time.Millisecond), span.describe(n))
	s.printOf(n, "BenchmarkScaleThroughput %d %.1f runs/s %.1f pods/s %d Runs", perSecond(n, runs), perSecond(n, pods), n)
	s.printOf(n, "BenchmarkScaleCost %d %.1f operator-CPU-ms/Run %.1f server-CPU-ms/Run %.1f node-CPU-ms/Run %.2f writes/Run %.1f reconciles/Run %.3f settled/Run %.0f RSS-MiB %.2f status-patches/Run %.2f checks/Run",
		span.operatorCPU(n), span.serverCPU(n), span.ownCPU(n), span.writes(n), span.reconciles(n), settled, heapOf(span.operator[1]).rss, patches, checks)
	s.printOf(n, "BenchmarkScaleBurst %d %.0f p50-ms %.0f p99-ms", ms(quantile(toPod, 50)), ms(quantile(toPod, 99)))
}

// barePods creates the bare pods from one number to another, and returns when all have ended.
func (s *scale) barePods(from, to int) time.Duration {
	s.t.Helper()
	begun := time.Now()
	s.flood(to-from, func(i int) client.Object { return s.barePod(from + i) })
	return s.tally.await("bare pods end", func(c counts) bool { return c.runBarePod == to }).Sub(begun)
}

// settledOnce fails the test unless the operator settled each Run that ended exactly
// once. It returns how often it settled a Run in the mean.
func (s *scale) settledOnce() float64 {
	s.t.Helper()
	events, err := s.api.EventsV1().Events(s.namespace).List(s.t.Context(), metav1.ListOptions{})
	if err != nil {
		s.t.Fatalf("listing events: %v", err)
	}
	runs, counts := s.tally.terminal(), settlements(events.Items)
	if wrong := notSettledOnce(runs, counts); len(wrong) > 0 {
		s.t.Errorf("%d of %d Runs were not settled exactly once, the first: %s", len(wrong), len(runs), wrong[0])
	}
	sum := 0
	for _, run := range runs {
		sum += counts[run]
	}
	return float64(sum) / float64(len(runs))
}

func perSecond(n int, d time.Duration) float64 { return float64(n) / d.Seconds() }

func (s *scale) barePod(i int) *corev1.Pod {
	p := s.pod(fmt.Sprintf("bare-%d", i), "simulated")
	p.Spec.NodeSelector, p.Spec.Tolerations = simnode.Selector(simulated), simnode.Tolerations()
	return p
}

// latency is how long the operator takes for its steps while Runs come at a fixed
// rate: open-loop, so that a slow operator does not slow the load down.
func (s *scale) latency() {
	s.t.Helper()
	const perSecond = 10
	n := scaled(600, 100)
	span := s.begin()
	late := s.pace(n, time.Second/perSecond, func(i int) client.Object { return s.newRun("paced", i, "brief") })
	s.tally.await("all Runs end", func(c counts) bool { return c.terminal == n+1 })
	s.settle()
	span.end()
	s.tally.mustSucceed()
	s.settledOnce()
	toPod, toEnd := s.tally.durations("paced-", n, untilPod), s.tally.durations("paced-", n, untilEnd)
	fmt.Printf("%d Runs at %d a second: requests sent late by p50 %s, p99 %s; due → pod p50 %s, p99 %s; result sent → terminal p50 %s, p99 %s; %s\n", n, perSecond,
		quantile(late, 50), quantile(late, 99), quantile(toPod, 50), quantile(toPod, 99), quantile(toEnd, 50), quantile(toEnd, 99), span.describe(n))
	s.printOf(n, "BenchmarkScaleDueToPod %d %.1f p50-ms %.1f p99-ms %d Runs", ms(quantile(toPod, 50)), ms(quantile(toPod, 99)), n)
	s.printOf(n, "BenchmarkScaleSentToTerminal %d %.1f p50-ms %.1f p99-ms", ms(quantile(toEnd, 50)), ms(quantile(toEnd, 99)))
	s.printOf(n, "BenchmarkScaleLoad %d %.2f p50-ms %.2f p99-ms", ms(quantile(late, 50)), ms(quantile(late, 99)))
}
