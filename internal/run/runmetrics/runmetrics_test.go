package runmetrics

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// reset gives a test metrics without series.
func reset(t *testing.T) {
	t.Helper()
	empty := func() {
		for _, f := range all {
			f.series = map[[maxLabels]string]float64{}
		}
		for _, h := range histograms {
			h.vec.Reset()
		}
		untried.count = map[string]int{}
		namespaces, agents, models, reasons = newBound(maxNamespaces), newBound(maxPairs), newBound(maxPairs), newBound(maxReasons)
		tracked = newActiveRuns()
	}
	empty()
	t.Cleanup(empty)
}

var noon = metav1.NewTime(time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))

func later() time.Time { return noon.Add(24 * time.Hour) }

// endedRun is a Run that used tokens and money.
func endedRun(namespace, agent, model string) *v1alpha1.Run {
	microUSD := int64(420_000)
	end := metav1.NewTime(noon.Add(time.Minute))
	start := metav1.NewTime(noon.Add(2 * time.Second))
	return &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "run", UID: "uid", CreationTimestamp: noon},
		Spec:       v1alpha1.RunSpec{Agent: agent},
		Status: v1alpha1.RunStatus{StartTime: &start, CompletionTime: &end, Attempt: &v1alpha1.Attempt{Number: 1}, Progress: &v1alpha1.RunProgress{
			Model:  model,
			Counts: v1alpha1.Counts{ModelCalls: 3, ToolCalls: 9, ToolErrors: 5, Errors: 6},
			Usage: v1alpha1.Usage{
				InputTokens: 100, CacheReadTokens: 60, CacheWriteTokens: 10, OutputTokens: 50, ReasoningTokens: 20,
				TotalTokens: 90, CostMicroUSD: &microUSD,
			},
			Refused: &v1alpha1.Refused{Connections: 7, ToolCalls: 4},
		}},
	}
}

// served returns the series of a metric, each as its labels and value, sorted.
func served(t *testing.T, name string) []string {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Collector{})
	gathered, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range gathered {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			out = append(out, fmt.Sprintf("%s %g", strings.Join(labels, ","), m.GetCounter().GetValue()+m.GetGauge().GetValue()+m.GetHistogram().GetSampleSum()))
		}
	}
	slices.Sort(out)
	return out
}

func expect(t *testing.T, name string, want ...string) {
	t.Helper()
	if got := served(t, name); !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", name, got, want)
	}
}

func TestMetricsFollowTheConventionsOfPrometheus(t *testing.T) {
	reset(t)
	Finished(endedRun("team-a", "coder", "large"), v1alpha1.ReasonFinished)
	for _, f := range all {
		f.add(1, slices.Repeat([]string{"x"}, len(f.Labels))...)
	}
	problems, err := testutil.CollectAndLint(Collector{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if n, want := testutil.CollectAndCount(Collector{}), len(Families()); n < want {
		t.Errorf("%d series of %d metrics", n, want)
	}
}

func TestARunThatEndedCountsWhatItUsed(t *testing.T) {
	reset(t)
	Finished(endedRun("team-a", "coder", "large"), v1alpha1.ReasonFinished)
	// Labels are sorted by name: agent, kind, model, namespace, reason.
	expect(t, "deckhand_runs_finished_total", "coder,team-a,Finished 1")
	expect(t, "deckhand_tokens_total", "coder,CacheRead,large,team-a 60", "coder,CacheWrite,large,team-a 10",
		"coder,Input,large,team-a 30", "coder,Output,large,team-a 30", "coder,Reasoning,large,team-a 20")
	expect(t, "deckhand_cost_usd_total", "coder,large,team-a 0.42")
	expect(t, "deckhand_runs_without_cost_total")
	expect(t, "deckhand_model_calls_total", "coder,large,team-a 3")
	expect(t, "deckhand_tool_calls_total", "coder,team-a,Denied 4", "coder,team-a,Failed 1", "coder,team-a,Succeeded 4")
	expect(t, "deckhand_call_errors_total", "coder,team-a 6")
	expect(t, "deckhand_refused_connections_total", "coder,team-a 7")
	expect(t, "deckhand_run_duration_seconds", "team-a 60")
	expect(t, "deckhand_run_start_delay_seconds", "team-a 2")
}

// Each tool call has one result, also in a report that does not add up.
func TestToolCallsByResult(t *testing.T) {
	cases := map[string]struct {
		calls, errors, denied int64
		want                  map[string]int64
	}{
		"none":                   {0, 0, 0, map[string]int64{"Succeeded": 0, "Failed": 0, "Denied": 0}},
		"of each":                {9, 5, 2, map[string]int64{"Succeeded": 4, "Failed": 3, "Denied": 2}},
		"an older runner":        {9, 0, 2, map[string]int64{"Succeeded": 9, "Failed": 0, "Denied": 0}},
		"more errors than calls": {2, 9, 1, map[string]int64{"Succeeded": 0, "Failed": 1, "Denied": 1}},
		"more denied than calls": {2, 1, 9, map[string]int64{"Succeeded": 1, "Failed": 0, "Denied": 1}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.RunProgress{
				Counts:  v1alpha1.Counts{ToolCalls: tc.calls, ToolErrors: tc.errors},
				Refused: &v1alpha1.Refused{ToolCalls: tc.denied},
			}
			if diff := cmp.Diff(tc.want, callsByResult(p)); diff != "" {
				t.Error("-want +got:\n" + diff)
			}
		})
	}
}

func TestUsageThatAnotherRunHasIsCountedOnce(t *testing.T) {
	reset(t)
	workflow := endedRun("team-a", "", "")
	workflow.Spec.Workflow = "release"
	child := endedRun("team-a", "helper", "small")
	child.Labels = map[string]string{v1alpha1.LabelParentRun: "parent"}
	child.OwnerReferences = []metav1.OwnerReference{{Kind: "Run", Name: "parent", Controller: new(true)}}
	Finished(workflow, v1alpha1.ReasonFinished)
	Finished(child, v1alpha1.ReasonFinished)
	expect(t, "deckhand_runs_finished_total", ",team-a,Finished 1", "helper,team-a,Finished 1")
	expect(t, "deckhand_tokens_total")
	expect(t, "deckhand_cost_usd_total")
	calls := child.Status.Progress.Counts.ModelCalls
	expect(t, "deckhand_model_calls_total", fmt.Sprintf("helper,small,team-a %d", calls))
}

func TestARunWithoutPricesIsCounted(t *testing.T) {
	reset(t)
	run := endedRun("team-a", "coder", "large")
	run.Status.Progress.Usage.CostMicroUSD = nil
	Finished(run, v1alpha1.ReasonFinished)
	expect(t, "deckhand_cost_usd_total")
	expect(t, "deckhand_runs_without_cost_total", "coder,large,team-a 1")
}

func TestNumbersBelowZeroAreNotCounted(t *testing.T) {
	reset(t)
	run := endedRun("team-a", "coder", "large")
	run.Status.Progress.Usage = v1alpha1.Usage{InputTokens: 5, CacheReadTokens: 9, OutputTokens: -1}
	Finished(run, v1alpha1.ReasonFinished)
	expect(t, "deckhand_tokens_total", "coder,CacheRead,large,team-a 9")
}

func TestAttemptsAreCountedByTheirDifference(t *testing.T) {
	reset(t)
	run := endedRun("team-a", "coder", "large")
	before := v1alpha1.RunStatus{Attempt: &v1alpha1.Attempt{Number: 1}}
	after := v1alpha1.RunStatus{Attempt: &v1alpha1.Attempt{Number: 2}, Failures: 1}
	Attempts(run, v1alpha1.RunStatus{}, before)
	Attempts(run, before, after)
	Attempts(run, after, after)
	expect(t, "deckhand_run_attempts_started_total", "coder,team-a 2")
	expect(t, "deckhand_run_attempts_failed_total", "coder,Failure,team-a 1")
	Attempts(run, v1alpha1.RunStatus{}, v1alpha1.RunStatus{Disruptions: 1})
	expect(t, "deckhand_run_attempts_failed_total", "coder,Disruption,team-a 1", "coder,Failure,team-a 1")
}

func TestActiveRunsAreGaugedByReason(t *testing.T) {
	reset(t)
	h := Handler(later)
	run := endedRun("team-a", "coder", "large")
	run.Status = v1alpha1.RunStatus{}
	h.OnAdd(run, true)
	h.OnAdd(run, true) // a second operator in the process
	expect(t, "deckhand_runs_active", "coder,team-a,Pending 1")
	queued := run.DeepCopy()
	queued.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Reason: v1alpha1.ReasonQueued}}
	h.OnUpdate(run, queued)
	expect(t, "deckhand_runs_active", "coder,team-a,Queued 1")
	ended := queued.DeepCopy()
	ended.Status.CompletionTime = &noon
	h.OnUpdate(queued, ended)
	expect(t, "deckhand_runs_active")
	h.OnAdd(queued, false)
	h.OnDelete(queued)
	expect(t, "deckhand_runs_active")
}

func TestWaitsForModelsAreCountedWhenTheyEnd(t *testing.T) {
	reset(t)
	h := Handler(later)
	working := endedRun("team-a", "coder", "large")
	working.Status.CompletionTime, working.Status.Progress.ModelWait = nil, nil
	report := func(model string, since, at time.Duration) *v1alpha1.Run {
		run := working.DeepCopy()
		run.Status.Progress.Sequence = noon.Add(at).UnixMilli()
		if model != "" {
			run.Status.Progress.ModelWait = &v1alpha1.ModelWait{Model: model, Since: metav1.NewTime(noon.Add(since))}
		}
		return run
	}
	h.OnAdd(report("large", 0, 0), true)
	h.OnUpdate(working, report("large", 0, time.Second))
	h.OnUpdate(report("large", 0, time.Second), report("large", 0, time.Minute)) // another try
	expect(t, "deckhand_model_wait_seconds_total")
	h.OnUpdate(report("large", 0, time.Minute), report("", 0, 90*time.Second))
	expect(t, "deckhand_model_wait_seconds_total", "coder,large,team-a 90")
	h.OnUpdate(report("large", time.Hour, time.Hour), report("large", 2*time.Hour, time.Hour+time.Minute)) // answered in between
	expect(t, "deckhand_model_wait_seconds_total", "coder,large,team-a 150")
	ended := report("large", 0, 0)
	end := metav1.NewTime(noon.Add(30 * time.Second))
	ended.Status.CompletionTime = &end
	h.OnUpdate(report("large", 0, 0), ended)
	h.OnUpdate(ended, ended)
	expect(t, "deckhand_model_wait_seconds_total", "coder,large,team-a 180")
	h.OnUpdate(report("no name\n", 0, 0), report("", 0, time.Second))
	expect(t, "deckhand_model_wait_seconds_total", "coder,large,team-a 180", "coder,other,team-a 1")
	h.OnUpdate(report("large", -24*time.Hour, 0), report("", 0, time.Second)) // before the Run was created
	h.OnUpdate(report("large", 0, 0), report("", 0, 1000*time.Hour))          // ends in the future
	expect(t, "deckhand_model_wait_seconds_total", "coder,large,team-a 180", "coder,other,team-a 1")
}

func TestTheNumberOfSeriesIsBounded(t *testing.T) {
	reset(t)
	for n := range maxPairs + 100 {
		Finished(endedRun("team-a", fmt.Sprintf("agent-%d", n), "large"), v1alpha1.ReasonFinished)
	}
	if got := served(t, "deckhand_runs_finished_total"); len(got) != maxPairs+1 || !slices.Contains(got, "other,team-a,Finished 100") {
		t.Errorf("%d series, want %d and one for the other 100 Runs", len(got), maxPairs)
	}
	for n := range maxNamespaces + 50 {
		Finished(endedRun(fmt.Sprintf("ns-%d", n), "coder", "large"), v1alpha1.ReasonFinished)
	}
	if got := len(served(t, "deckhand_run_duration_seconds")); got != maxNamespaces+1 {
		t.Errorf("%d series of a histogram, want %d", got, maxNamespaces+1)
	}
	kept := slices.Collect(maps.Keys(cost.series))
	if len(kept) > maxPairs+maxNamespaces+1 {
		t.Errorf("%d series of costs", len(kept))
	}
}

// Who may create Runs can name any Agent. The Agents of other namespaces keep their series.
func TestAgentsThatDoNotExistTakeNoSeriesFromOthers(t *testing.T) {
	reset(t)
	for n := range maxPairs + 100 {
		run := endedRun("team-a", fmt.Sprintf("invented-%d", n), "")
		run.Status = v1alpha1.RunStatus{CompletionTime: &noon}
		Finished(run, v1alpha1.ReasonPendingTimeout)
	}
	Finished(endedRun("team-b", "coder", "large"), v1alpha1.ReasonFinished)
	Finished(endedRun("team-a", "coder", "large"), v1alpha1.ReasonFinished)
	got := served(t, "deckhand_runs_finished_total")
	for _, want := range []string{"coder,team-a,Finished 1", "coder,team-b,Finished 1", fmt.Sprintf("other,team-a,PendingTimeout %d", maxPairs+100-maxUntried)} {
		if !slices.Contains(got, want) {
			t.Errorf("%d series without %s", len(got), want)
		}
	}
}

// Scrapes while Runs end see only whole values that never fall, and no Run is lost.
func TestScrapesWhileRunsEnd(t *testing.T) {
	reset(t)
	const workers, each = 4, 250
	run := endedRun("team-a", "coder", "large")
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				Finished(run, v1alpha1.ReasonFinished)
			}
		})
	}
	last := 0.0
	for last < workers*each {
		lines := served(t, "deckhand_runs_finished_total")
		if len(lines) == 0 {
			continue
		}
		var now float64
		if _, err := fmt.Sscanf(lines[0], "coder,team-a,Finished %g", &now); err != nil || now < last || len(lines) > 1 {
			t.Fatalf("after %g a scrape shows %q: %v", last, lines, err)
		}
		last = now
	}
	all.Wait()
	expect(t, "deckhand_runs_finished_total", fmt.Sprintf("coder,team-a,Finished %d", workers*each))
	expect(t, "deckhand_tool_calls_total", "coder,team-a,Denied 4000", "coder,team-a,Failed 1000", "coder,team-a,Succeeded 4000")
}

// 10,000 Runs, each of another Agent in one of 1,000 namespaces, fill every bound.
func TestMemoryAtTenThousandRuns(t *testing.T) {
	reset(t)
	const most = 5 << 20
	h := Handler(later)
	runs := make([]*v1alpha1.Run, 10_000)
	for n := range runs {
		runs[n] = endedRun(fmt.Sprintf("namespace-%d", n%1000), fmt.Sprintf("agent-%d", n), fmt.Sprintf("model-%d", n%7))
		runs[n].UID = types.UID(fmt.Sprintf("00000000-0000-0000-0000-%012d", n))
	}
	before := heap()
	for _, run := range runs {
		Finished(run, v1alpha1.ReasonFinished)
		Waits(run, v1alpha1.ReasonRetrying)
		Attempts(run, v1alpha1.RunStatus{}, v1alpha1.RunStatus{Attempt: &v1alpha1.Attempt{Number: 1}, Failures: 1})
		h.OnAdd(&v1alpha1.Run{ObjectMeta: run.ObjectMeta, Spec: run.Spec}, true)
	}
	served(t, "deckhand_runs_active")
	if used := heap() - before; used > most {
		t.Errorf("metrics take %d KiB, want at most %d", used>>10, most>>10)
	} else {
		t.Logf("metrics take %d KiB", used>>10)
	}
	runtime.KeepAlive(runs)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
