//go:build bench

package bench

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// moments are when a watcher sees the stages of a Run.
type moments struct {
	created, pod, committed, terminal time.Time
}

// The operator's own share: from a Run to its pod, from a result to the end.
func TestOperatorsShare(t *testing.T) {
	r := newFixture(t)
	r.run(-1)
	var toPod, toEnd []time.Duration
	for n := range pairs {
		m := r.stages(fmt.Sprintf("stage-%d", n))
		toPod = append(toPod, m.pod.Sub(m.created))
		toEnd = append(toEnd, m.terminal.Sub(m.committed))
	}
	slices.Sort(toPod)
	slices.Sort(toEnd)
	fmt.Printf("median of %d: created → pod created %s, committed → terminal %s\n", pairs, toPod[pairs/2].Round(time.Millisecond), toEnd[pairs/2].Round(time.Millisecond))
	r.print("BenchmarkCreatedToPod %d %.1f ms", ms(toPod[pairs/2]))
	r.print("BenchmarkCommittedToTerminal %d %.1f ms", ms(toEnd[pairs/2]))
}

func (r *fixture) stages(name string) moments {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), time.Minute)
	defer cancel()
	runs, err := r.client.Watch(ctx, &v1alpha1.RunList{}, client.InNamespace(r.namespace))
	if err != nil {
		r.t.Fatal(err)
	}
	defer runs.Stop()
	pods, err := r.client.Watch(ctx, &corev1.PodList{}, client.InNamespace(r.namespace))
	if err != nil {
		r.t.Fatal(err)
	}
	defer pods.Stop()
	var m moments
	r.create(&v1alpha1.Run{ObjectMeta: r.meta(name), Spec: v1alpha1.RunSpec{Agent: "trivial", Prompt: "Say it."}})
	m.created = time.Now()
	for m.terminal.IsZero() {
		select {
		case e := <-pods.ResultChan():
			if p, is := e.Object.(*corev1.Pod); is && p.Labels[v1alpha1.LabelRun] == name {
				first(&m.pod)
			}
		case e := <-runs.ResultChan():
			m.see(e.Object, name)
		case <-ctx.Done():
			r.t.Fatalf("Run %s never ended", name)
		}
	}
	return m
}

// see notes what a Run shows for the first time.
func (m *moments) see(o any, name string) {
	seen, is := o.(*v1alpha1.Run)
	if !is || seen.Name != name {
		return
	}
	if p := seen.Status.Progress; p != nil && p.Result != nil {
		first(&m.committed)
	}
	if seen.Status.CompletionTime != nil {
		first(&m.terminal)
	}
}

func first(at *time.Time) {
	if at.IsZero() {
		*at = time.Now()
	}
}
