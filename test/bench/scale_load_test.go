//go:build bench

package bench

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// writers is how many requests of a flood are under way at once.
const writers = 16

// flood creates n objects as fast as the API server takes them.
func (s *scale) flood(n int, object func(int) client.Object) {
	s.t.Helper()
	var all sync.WaitGroup
	next := make(chan int)
	for range writers {
		all.Go(func() {
			for i := range next {
				s.send(object(i), time.Now())
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// pace creates n objects, one each interval, and does not wait for the answers in
// between. It returns how late each request was sent.
func (s *scale) pace(n int, interval time.Duration, object func(int) client.Object) []time.Duration {
	s.t.Helper()
	late := make([]time.Duration, n)
	var all sync.WaitGroup
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(i) * interval)
		<-time.After(time.Until(due))
		all.Go(func() {
			late[i] = time.Since(due)
			s.send(object(i), due)
		})
	}
	all.Wait()
	return late
}

// send creates an object that is due, and notes that of a Run.
func (s *scale) send(o client.Object, due time.Time) {
	s.t.Helper()
	if _, is := o.(*v1alpha1.Run); is {
		s.tally.due(o.GetName(), due)
	}
	if err := s.client.Create(s.t.Context(), o); err != nil {
		s.t.Errorf("creating %T %s: %v", o, o.GetName(), err)
	}
}

func (s *scale) createRuns(prefix string, n int, agent string) {
	s.t.Helper()
	s.flood(n, func(i int) client.Object { return s.newRun(prefix, i, agent) })
}

func (s *scale) newRun(prefix string, i int, agent string) *v1alpha1.Run {
	return &v1alpha1.Run{ObjectMeta: s.meta(fmt.Sprintf("%s-%d", prefix, i)), Spec: v1alpha1.RunSpec{Agent: agent, Prompt: "Say it."}}
}

// quantile is a percentile of durations, 50 for the median.
func quantile(all []time.Duration, percent int) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[min(len(sorted)*percent/100, len(sorted)-1)].Round(10 * time.Microsecond)
}
