package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What cannot be read is an error, whichever request it is: a Run is never decided on as if it were not
// there.
func TestWhatCannotBeReadIsAnError(t *testing.T) {
	progress := func(change func(*v1alpha1.RunProgress)) func(*refuser) {
		return func(s *refuser) {
			run := s.get()
			run.Status.Progress = &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, Effects: v1alpha1.EffectsBegun}
			change(run.Status.Progress)
			if err := s.Status().Update(s.t.Context(), run); err != nil {
				s.t.Fatal(err)
			}
		}
	}
	afterBegin := func(then func(*refuser)) func(*refuser) {
		return func(s *refuser) {
			s.begin()
			then(s)
		}
	}
	for name, tc := range map[string]struct {
		prepare func(*refuser)
		reads   string // a request that only this state needs
	}{
		"a Run that has not started":        {func(*refuser) {}, "get *v1alpha1.Model team-a/sonnet"},
		"a pod that nobody knows reported":  {progress(func(p *v1alpha1.RunProgress) { p.PodUID = "unknown" }), "list *v1alpha1.DecisionList"},
		"a pod that exists reported":        {afterBegin((*refuser).report), "list *v1alpha1.DecisionList"},
		"a pod that does not start":         {afterBegin(func(s *refuser) { s.Now = s.Now.Add(time.Minute) }), "list *v1.EventList"},
		"it asks for a child Run":           {afterBegin(progress(func(p *v1alpha1.RunProgress) { p.Pending = []v1alpha1.PendingRequest{review("s1c1")} })), "get *v1alpha1.Agent team-a/reviewer"},
		"a Decision is said to be acted on": {afterBegin(progress(acts("d"))), "get *v1alpha1.Decision team-a/d"},
		"its pod is gone":                   {afterBegin(func(s *refuser) { s.must(s.Delete(s.t.Context(), s.pod("x-1"))) }), "get *v1.Pod team-a/x-1"},
		"it has finished": {afterBegin(func(s *refuser) {
			s.change(stopRun)
			s.reconcileAll(3)
		}), "get *v1.Pod team-a/x-1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newRefuser(t, gen.Run(), gen.Agent(delegatesTo()))
			s.must(s.Create(t.Context(), gen.Agent(func(a *v1alpha1.Agent) { a.Name = "reviewer" })))
			tc.prepare(s)
			f := &failing{}
			s.reconciler.connect(f.client(s, getCached), f.client(s, getLive), nil)
			if _, err := s.reconciler.observe(t.Context(), s.get()); err != nil || !slices.Contains(f.requests, tc.reads) {
				t.Fatalf("%q are read, want %s among them (%v)", f.requests, tc.reads, err)
			}
			requests := f.requests
			for i, request := range requests {
				*f = failing{at: i + 1}
				if _, err := s.reconciler.observe(t.Context(), s.get()); !errors.Is(err, errUnreadable) {
					t.Errorf("request %d of %d, %s, fails: %v", i+1, len(requests), request, err)
				}
			}
		})
	}
}

func (s *refuser) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// A failing server notes what is read, and fails one request.
type failing struct {
	at       int // the first is 1; 0: none fails
	requests []string
}

func (f *failing) read(what string) error {
	f.requests = append(f.requests, what)
	if len(f.requests) == f.at {
		return errUnreadable
	}
	return nil
}

// A get is a request for an object.
type get func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error

func getLive(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.Get(ctx, key, o, opts...)
}

func (f *failing) client(s *refuser, get get) client.Client {
	return interceptor.NewClient(s, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if err := f.read(fmt.Sprintf("get %T %s", o, key)); err != nil {
				return err
			}
			return get(ctx, c, key, o, opts...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := f.read(fmt.Sprintf("list %T", list)); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
	})
}
