//go:build bench

package bench

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// writers is how many requests are under way at once, but for those of pace.
const writers = 16

// flood creates n objects as fast as the API server takes them.
func (s *scale) flood(n int, object func(int) client.Object) {
	s.t.Helper()
	s.eachOf(n, func(i int) error { return s.send(object(i), time.Now()) })
}

// eachOf does something n times, several at once.
func (s *scale) eachOf(n int, do func(int) error) {
	s.t.Helper()
	var all errgroup.Group
	all.SetLimit(writers)
	for i := range n {
		all.Go(func() error { return do(i) })
	}
	if err := all.Wait(); err != nil {
		s.t.Fatal(err)
	}
}

// pace creates n objects, one each interval, and does not wait for the answers in
// between. It returns how late each request was sent.
func (s *scale) pace(n int, interval time.Duration, object func(int) client.Object) []time.Duration {
	s.t.Helper()
	late := make([]time.Duration, n)
	var all errgroup.Group
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(i) * interval)
		<-time.After(time.Until(due))
		all.Go(func() error {
			late[i] = time.Since(due)
			return s.send(object(i), due)
		})
	}
	if err := all.Wait(); err != nil {
		s.t.Error(err)
	}
	return late
}

// send creates an object that is due, and notes that of a Run.
func (s *scale) send(o client.Object, due time.Time) error {
	if _, is := o.(*v1alpha1.Run); is {
		s.tally.due(o.GetName(), due)
	}
	if err := s.client.Create(s.t.Context(), o); err != nil {
		return fmt.Errorf("creating %T %s: %w", o, o.GetName(), err)
	}
	return nil
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
