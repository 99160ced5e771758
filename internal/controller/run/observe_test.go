package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
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

// splitCaches is a Reconciler with the two caches of pods. Its live reader counts how
// often pods are read.
type splitCaches struct {
	*refuser
	liveReads int
}

func newSplitCaches(t *testing.T, run *v1alpha1.Run) *splitCaches {
	t.Helper()
	s := &splitCaches{refuser: newRefuser(t, run, gen.Agent())}
	cached := interceptor.NewClient(s, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		err := getCached(ctx, c, key, o, opts...)
		if pod, is := o.(*corev1.Pod); is && err == nil && hasEnded(pod) {
			return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
		}
		return err
	}})
	ended := interceptor.NewClient(s, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
		var pod corev1.Pod
		if err := c.Get(ctx, key, &pod); err != nil {
			return err
		}
		if !hasEnded(&pod) {
			return apierrors.NewNotFound(corev1.Resource("pods"), key.Name)
		}
		*o.(*metav1.PartialObjectMetadata) = *metadataOf(t, &pod)
		return nil
	}})
	live := interceptor.NewClient(s, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		if _, is := o.(*corev1.Pod); is {
			s.liveReads++
		}
		return c.Get(ctx, key, o, opts...)
	}})
	s.reconciler.connect(cached, live, ended)
	return s
}

func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// metadataOf is the metadata of an ended pod as its cache keeps it.
func metadataOf(t *testing.T, pod *corev1.Pod) *metav1.PartialObjectMetadata {
	t.Helper()
	m := &metav1.PartialObjectMetadata{ObjectMeta: *pod.ObjectMeta.DeepCopy()}
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	kept, err := objectcache.EndedPod(m)
	if err != nil {
		t.Fatal(err)
	}
	return kept.(*metav1.PartialObjectMetadata)
}

// start makes the first pod, whose runner reports.
func (s *splitCaches) start() *corev1.Pod {
	s.t.Helper()
	s.begin()
	s.report()
	s.reconcileAll(1)
	return s.only()
}

func (s *splitCaches) only() *corev1.Pod {
	s.t.Helper()
	var pods corev1.PodList
	if err := s.List(s.t.Context(), &pods); err != nil || len(pods.Items) != 1 {
		s.t.Fatalf("there are %d pods (%v), want 1", len(pods.Items), err)
	}
	return &pods.Items[0]
}

// end is the kubelet's report that a pod has ended.
func (s *splitCaches) end(pod *corev1.Pod, code int32) {
	s.t.Helper()
	pod.Status.Phase = corev1.PodFailed
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(s.Now)}}}}
	if err := s.Status().Update(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// finishLongAgo makes the Run one that finished before what is live is read.
func (s *splitCaches) finishLongAgo() {
	s.t.Helper()
	run := s.get()
	run.Status.CompletionTime = &metav1.Time{Time: s.Now.Add(-2 * leaveGrace)}
	if err := s.Status().Update(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
	s.liveReads = 0
}

func TestEndedPodOfAFinishedRunIsDeletedByItsMetadata(t *testing.T) {
	s := newSplitCaches(t, gen.Run())
	s.end(s.start(), 0)
	s.finishLongAgo()
	before := s.only().ResourceVersion
	s.reconcileAll(1)
	if after := s.only().ResourceVersion; after != before {
		t.Error("the pod was changed before its retention passed")
	}
	s.Now = s.Now.Add(2 * time.Hour)
	s.reconcileAll(1)
	var pods corev1.PodList
	if err := s.List(t.Context(), &pods); err != nil || len(pods.Items) > 0 {
		t.Errorf("there are %d pods after their retention (%v), want 0", len(pods.Items), err)
	}
	if s.liveReads > 0 {
		t.Errorf("pods were read from the API server %d times, want 0", s.liveReads)
	}
}

func TestEndedPodOfAnUnfinishedRunIsReadInFull(t *testing.T) {
	s := newSplitCaches(t, gen.Run(func(r *v1alpha1.Run) { r.Spec.MaxRetries = new(int32(0)) }))
	s.end(s.start(), 1)
	s.reconcileAll(1)
	if got := reasonOf(s.get()); got != v1alpha1.ReasonRunnerFailed {
		t.Errorf("the Run is %s: %s, want the reason that the pod's exit code gives", got, messageOf(s.get()))
	}
}

// How the pod ended is nothing to a Run whose runner reported that the work is done.
func TestEndedPodOfASucceededRunIsNotRead(t *testing.T) {
	for reason, reads := range map[string]int{v1alpha1.ReasonFinished: 0, v1alpha1.ReasonModelUnavailable: 1} {
		t.Run(reason, func(t *testing.T) {
			s := newSplitCaches(t, gen.Run(func(r *v1alpha1.Run) { r.Spec.MaxRetries = new(int32(0)) }))
			s.end(s.start(), 0)
			run := s.get()
			run.Status.Progress.Result = &v1alpha1.Result{Committed: true, Reason: reason}
			if err := s.Status().Update(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			s.liveReads = 0
			s.reconcileAll(1)
			if got := reasonOf(s.get()); got != reason || s.liveReads != reads {
				t.Errorf("the Run is %s after %d reads of its pod, want %s after %d", got, s.liveReads, reason, reads)
			}
		})
	}
}

func TestOwnerAndLabelsOfAnEndedPodAreRestored(t *testing.T) {
	cases := map[string]string{
		"the owner":       `{"metadata":{"ownerReferences":null}}`,
		"the attempt":     `{"metadata":{"labels":{"deckhand.dev/attempt":"7"}}}`,
		"the Run's label": `{"metadata":{"labels":{"deckhand.dev/run":"other"}}}`,
	}
	for name, patch := range cases {
		t.Run(name, func(t *testing.T) {
			s := newSplitCaches(t, gen.Run())
			s.end(s.start(), 0)
			s.finishLongAgo()
			if err := s.Patch(t.Context(), s.only(), client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
				t.Fatal(err)
			}
			s.reconcileAll(1)
			pod := s.only()
			if !metav1.IsControlledBy(pod, s.get()) || pod.Labels[v1alpha1.LabelRun] != "x" || pod.Labels[v1alpha1.LabelAttempt] != "1" {
				t.Errorf("the pod has owners %v and labels %v", pod.OwnerReferences, pod.Labels)
			}
		})
	}
}

// client-go transforms what it lists twice. Copies of copies would take as much memory
// again while it does.
func TestWhatIsReducedIsNotCopiedAgain(t *testing.T) {
	pod, run := endedPod(t), finishedRun()
	m := &metav1.PartialObjectMetadata{ObjectMeta: *pod.ObjectMeta.DeepCopy()}
	for name, tc := range map[string]struct {
		object client.Object
		reduce func(any) (any, error)
	}{
		"a pod":                    {pod, objectcache.Pod},
		"metadata of an ended pod": {m, objectcache.EndedPod},
		"a finished Run":           {run, objectcache.Run},
		"an active Run":            {gen.Run(func(r *v1alpha1.Run) { r.ManagedFields = run.ManagedFields }), objectcache.Run},
	} {
		t.Run(name, func(t *testing.T) {
			once, err := tc.reduce(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			if once == any(tc.object) {
				t.Error("nothing was reduced")
			}
			if twice, err := tc.reduce(once); err != nil || twice != once {
				t.Errorf("it was copied again (%v)", err)
			}
		})
	}
}

func TestWhatOfAnEndedPodMatters(t *testing.T) {
	pod := endedPod(t)
	is := metadataOf(t, pod)
	if !endedPodChanged.Create(event.CreateEvent{Object: is}) {
		t.Error("that a pod has ended does not matter")
	}
	if endedPodChanged.Create(event.CreateEvent{Object: is, IsInInitialList: true}) {
		t.Error("a pod that had ended at the start matters")
	}
	if endedPodChanged.Update(event.UpdateEvent{ObjectOld: is, ObjectNew: is.DeepCopy()}) {
		t.Error("an update without a change matters")
	}
	pod.OwnerReferences = nil
	if !endedPodChanged.Update(event.UpdateEvent{ObjectOld: is, ObjectNew: metadataOf(t, pod)}) {
		t.Error("the loss of its owner does not matter")
	}
	if !endedPodChanged.Delete(event.DeleteEvent{Object: is}) {
		t.Error("its deletion does not matter")
	}
	if got := runsOfPod(t.Context(), is); len(got) != 1 || got[0].Name != pod.Labels[v1alpha1.LabelRun] {
		t.Errorf("it belongs to %v, want Run %s", got, pod.Labels[v1alpha1.LabelRun])
	}
}
