package queue_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/queue"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A Run that waits for the end of another keeps no Run behind it from starting.
func TestARunThatWaitsForAnotherTakesNoPlace(t *testing.T) {
	one := int32(1)
	agent := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Concurrency = &one })
	run := func(name string, age time.Duration, mod func(*v1alpha1.Run)) *v1alpha1.Run {
		return gen.Run(func(r *v1alpha1.Run) {
			r.Name, r.UID, r.CreationTimestamp = name, types.UID("uid-"+name), metav1.NewTime(gen.Noon.Add(-age))
			mod(r)
		})
	}
	first := run("first", time.Hour, func(r *v1alpha1.Run) { r.Spec.Agent = "other" })
	second := run("second", time.Minute, func(r *v1alpha1.Run) { r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first"} })
	third := run("third", time.Second, func(*v1alpha1.Run) {})
	for name, tc := range map[string]struct {
		first *v1alpha1.Run
		want  int // the number of the third Run in the queue
	}{
		"an active one": {first, 0},
		"one that has ended": {run("first", time.Hour, func(r *v1alpha1.Run) {
			now := metav1.NewTime(gen.Noon)
			r.Spec.Agent, r.Status.CompletionTime = "other", &now
		}), 2},
		"one that never comes": {run("zeroth", time.Hour, func(r *v1alpha1.Run) { r.Spec.Agent = "other" }), 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{agent.DeepCopy(), tc.first.DeepCopy(), second.DeepCopy(), third.DeepCopy()}
			c := apierrtest.NewServer(t, objects, func(b *fake.ClientBuilder) {
				b.WithIndex(&v1alpha1.Run{}, queue.UnfinishedByAgent, queue.IndexUnfinishedByAgent)
			})
			got, err := queue.New(c).Position(t.Context(), third)
			if err != nil || got.Number != tc.want {
				t.Errorf("the position is %+v, %v; want number %d", got, err, tc.want)
			}
		})
	}
}

// The controller knows that the Run to continue has ended, and the cache of the queue still shows it as active, or not
// at all. The Run takes its place all the same, and no other Run takes it then.
func TestALateCacheLetsNoRunPassTheBound(t *testing.T) {
	one := int32(1)
	agent := gen.Agent(func(a *v1alpha1.Agent) { a.Spec.Concurrency = &one })
	run := func(name string, mod func(*v1alpha1.Run)) *v1alpha1.Run {
		return gen.Run(func(r *v1alpha1.Run) { r.Name, r.UID = name, types.UID("uid-"+name); mod(r) })
	}
	first := run("first", func(r *v1alpha1.Run) { r.Spec.Agent = "other" })
	second := run("second", func(r *v1alpha1.Run) { r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first"} })
	third := run("third", func(*v1alpha1.Run) {})
	active := run("third", func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} })
	for name, tc := range map[string]struct {
		cached        []client.Object
		second, third queue.Position
	}{
		"the place is free":                    {[]client.Object{first, second, third}, queue.Position{Limit: 1}, queue.Position{Limit: 1, Active: 1, Number: 1}},
		"the place is free, and first unknown": {[]client.Object{second, third}, queue.Position{Limit: 1}, queue.Position{Limit: 1, Active: 1, Number: 1}},
		"the place is taken":                   {[]client.Object{first, second, active}, queue.Position{Limit: 1, Active: 1, Number: 1}, queue.Position{}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{agent.DeepCopy()}
			for _, o := range tc.cached {
				objects = append(objects, o.DeepCopyObject().(client.Object))
			}
			q := queue.New(apierrtest.NewServer(t, objects, func(b *fake.ClientBuilder) {
				b.WithIndex(&v1alpha1.Run{}, queue.UnfinishedByAgent, queue.IndexUnfinishedByAgent)
			}))
			observed, err := q.Position(t.Context(), second)
			if err != nil || observed != tc.second {
				t.Errorf("the second Run observes %+v, %v; want %+v", observed, err, tc.second)
			}
			if got, err := q.Take(t.Context(), second); err != nil || got != tc.second {
				t.Errorf("the second Run takes %+v, %v; want %+v", got, err, tc.second)
			}
			if got, err := q.Position(t.Context(), third); err != nil || got != tc.third {
				t.Errorf("the third Run observes %+v, %v; want %+v", got, err, tc.third)
			}
		})
	}
}
