//go:build bench

package bench

import (
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// workflow is one Run of a workflow whose only node has many items, all at once.
func (s *scale) workflow() {
	s.t.Helper()
	n := scaled(500, 10)
	s.create(&v1alpha1.Workflow{ObjectMeta: s.meta("many"), Spec: v1alpha1.WorkflowSpec{
		Input: &v1alpha1.Input{Fields: []v1alpha1.Field{{Name: "items", Schema: &runtime.RawExtension{Raw: []byte(`{"type":"array","items":{"type":"integer"}}`)}}}},
		Nodes: []v1alpha1.Node{{
			Name: "each", Agent: "brief", Prompt: "Say ${{ item }}.",
			ForEach: &v1alpha1.ForEach{Items: "input.items", MaxParallel: int32(n)},
		}},
	}})
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	input, err := json.Marshal(map[string]any{"items": items})
	if err != nil {
		s.t.Fatal(err)
	}
	span := s.begin()
	begun := time.Now()
	err = s.send(&v1alpha1.Run{ObjectMeta: s.meta("many"), Spec: v1alpha1.RunSpec{Workflow: "many", Input: &runtime.RawExtension{Raw: input}}}, begun)
	if err != nil {
		s.t.Fatal(err)
	}
	took := s.tally.await("the workflow ends", func(c counts) bool { return c.terminal == n+2 }).Sub(begun)
	s.settle()
	span.end()
	s.tally.mustSucceed()
	s.settledOnce()
	fmt.Printf("a workflow of %d items in %s; %s\n", n, took.Round(time.Millisecond), span.describe(n))
	s.printOf(n, "BenchmarkScaleWorkflow %d %.0f ms %.1f items/s %.1f operator-CPU-ms/item %.2f writes/item %.1f reconciles/item %d items",
		ms(took), perSecond(n, took), span.operatorCPU(n), span.writes(n), span.reconciles(n), n)
}

// schedules are many that are due at the same time each minute.
func (s *scale) schedules() {
	s.t.Helper()
	n := scaled(200, 10)
	s.awayFromTheMinute()
	s.flood(n, func(i int) client.Object {
		return &v1alpha1.Schedule{ObjectMeta: s.meta(fmt.Sprintf("each-minute-%d", i)), Spec: v1alpha1.ScheduleSpec{
			Schedule: "* * * * *", RunTemplate: v1alpha1.RunTemplate{Spec: v1alpha1.RunSpec{Agent: "brief", Prompt: "Say it."}},
		}}
	})
	s.settle()
	span := s.begin()
	s.tally.await("each Schedule's Run ends", func(c counts) bool { return c.terminal == n+1 })
	span.end()
	s.tally.mustSucceed()
	var made, ended []time.Duration
	for _, r := range s.tally.of("each-minute-") {
		if !r.scheduled.IsZero() && r.done {
			made, ended = append(made, r.added.Sub(r.scheduled)), append(ended, r.terminal.Sub(r.scheduled))
		}
	}
	if len(made) != n {
		s.t.Errorf("%d Schedules made %d Runs in their first minute", n, len(made))
	}
	fmt.Printf("%d Schedules at one minute: due → Run p50 %s, p99 %s; due → terminal p50 %s, p99 %s; %s\n", n,
		quantile(made, 50), quantile(made, 99), quantile(ended, 50), quantile(ended, 99), span.describe(n))
	s.printOf(n, "BenchmarkScaleSchedules %d %.0f p50-ms %.0f p99-ms %.0f ended-p99-ms %d Schedules", ms(quantile(made, 50)), ms(quantile(made, 99)), ms(quantile(ended, 99)), n)
}

// awayFromTheMinute waits until the minute is young: a Schedule that is created
// later might not be known when the next one begins.
func (*scale) awayFromTheMinute() {
	const late = 40 * time.Second
	now := time.Now()
	if begun := now.Truncate(time.Minute); now.Sub(begun) > late {
		<-time.After(time.Until(begun.Add(time.Minute + time.Second)))
	}
}
