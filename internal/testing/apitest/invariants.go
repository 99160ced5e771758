package apitest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// maxRun is the most bytes of a stored Run.
const maxRun = 64 << 10

// CheckInvariants checks at the end of a test, over every version of every Run
// and pod that a namespace had since this call, what must hold whatever fails:
//   - a Run never has two live pods, and no attempt has two pods, unless the first was
//     deleted before it reported or was recorded
//   - the number of an attempt, the failures, the disruptions and, within an
//     attempt, the sequence of its reports never fall
//   - a Run ends once: afterwards its outcome stays, and no pod is created for it
//   - a stored Run has fewer than 64 KiB
//   - a deleted Run disappears at once, and it owns the objects that the operator made for it, so that the garbage
//     collector deletes them
func (s *Server) CheckInvariants(t *testing.T, namespace string) {
	t.Helper()
	check, err := s.Invariants(t.Context(), namespace, t.Errorf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := check(ctx); err != nil {
			t.Errorf("checking the invariants: %v", err)
		}
	})
}

// Invariants returns a function that checks what CheckInvariants checks, from this call on,
// and reports each violation. It deletes the Runs of the namespace.
func (s *Server) Invariants(ctx context.Context, namespace string, report func(format string, args ...any)) (check func(context.Context) error, err error) {
	c, err := client.NewWithWatch(s.Config, client.Options{Scheme: s.Admin.Scheme()})
	if err != nil {
		return nil, err
	}
	i := &invariants{client: c, namespace: namespace, report: report}
	if i.runsSince, err = i.version(ctx, &v1alpha1.RunList{}); err != nil {
		return nil, err
	}
	i.podsSince, err = i.version(ctx, &corev1.PodList{})
	return i.check, err
}

// invariants check the history of a namespace.
type invariants struct {
	client               client.WithWatch
	namespace            string
	runsSince, podsSince string // resource versions
	report               func(format string, args ...any)

	// recorded is the resource version at which a status first named each pod, as the pod of the attempt or as its
	// reporter.
	recorded map[types.UID]uint64
	deleted  map[types.UID]bool // the pods that are gone
}

func (i *invariants) version(ctx context.Context, list client.ObjectList) (string, error) {
	err := i.client.List(ctx, list, client.InNamespace(i.namespace))
	return list.GetResourceVersion(), err
}

func (i *invariants) check(ctx context.Context) error {
	runs, err := i.history(ctx, &v1alpha1.RunList{}, i.runsSince)
	if err != nil {
		return fmt.Errorf("reading the history of Runs: %w", err)
	}
	pods, err := i.history(ctx, &corev1.PodList{}, i.podsSince)
	if err != nil {
		return fmt.Errorf("reading the history of pods: %w", err)
	}
	ended := i.checkRuns(runs)
	i.checkPods(pods, ended)
	return i.checkDeletion(ctx)
}

// history returns all watch events of a kind since a resource version, in order.
func (i *invariants) history(ctx context.Context, list client.ObjectList, since string) ([]watch.Event, error) {
	if err := i.client.List(ctx, list, client.InNamespace(i.namespace)); err != nil {
		return nil, err
	}
	pending, err := changedSince(list, since)
	if err != nil {
		return nil, err
	}
	w, err := i.client.Watch(ctx, list, client.InNamespace(i.namespace), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: since}})
	if err != nil {
		return nil, err
	}
	defer w.Stop()
	var out []watch.Event
	for len(pending) > 0 {
		event, open := <-w.ResultChan()
		if !open || event.Type == watch.Error {
			return nil, fmt.Errorf("the watch ended before it was at the end: %w", errors.Join(ctx.Err(), apierrors.FromObject(event.Object)))
		}
		o, err := meta.Accessor(event.Object)
		if err != nil {
			return nil, err
		}
		out = append(out, event)
		if pending[o.GetUID()] == o.GetResourceVersion() {
			delete(pending, o.GetUID())
		}
	}
	return out, nil
}

// changedSince returns the resource versions of listed objects that changed since a
// resource version.
func changedSince(list client.ObjectList, since string) (map[types.UID]string, error) {
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	begin, err := strconv.ParseUint(since, 10, 64)
	if err != nil {
		return nil, err
	}
	out := map[types.UID]string{}
	for _, item := range objects {
		o, err := meta.Accessor(item)
		if err != nil {
			return nil, err
		}
		if at, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64); err != nil || at > begin {
			out[o.GetUID()] = o.GetResourceVersion()
		}
	}
	return out, nil
}

// checkRuns compares each version of each Run with the one before. It returns
// the resource version at which each Run had ended.
func (i *invariants) checkRuns(events []watch.Event) map[types.UID]uint64 {
	i.recorded = map[types.UID]uint64{}
	last, ended := map[types.UID]*v1alpha1.Run{}, map[types.UID]uint64{}
	for _, event := range events {
		run, is := event.Object.(*v1alpha1.Run)
		if !is {
			continue
		}
		if data, err := json.Marshal(run); err != nil || len(data) >= maxRun {
			i.report("Run %s has %d bytes (%v)", run.Name, len(data), err)
		}
		if before := last[run.UID]; before != nil {
			i.checkChange(before, run)
		}
		at, _ := strconv.ParseUint(run.ResourceVersion, 10, 64)
		if _, was := ended[run.UID]; !was && outcomeOf(run) != nil {
			ended[run.UID] = at
		}
		last[run.UID] = run
		i.record(run.Status, at)
	}
	return ended
}

// record notes the pods that a status names.
func (i *invariants) record(status v1alpha1.RunStatus, at uint64) {
	var named []types.UID
	if a := status.Attempt; a != nil {
		named = append(named, types.UID(a.PodUID))
	}
	if p := status.Progress; p != nil {
		named = append(named, types.UID(p.PodUID))
	}
	for _, pod := range named {
		if _, known := i.recorded[pod]; !known {
			i.recorded[pod] = at
		}
	}
}

// isUsed reports whether a pod was recorded before a resource version, or still exists.
func (i *invariants) isUsed(pod types.UID, before uint64) bool {
	at, is := i.recorded[pod]
	return is && at < before || !i.deleted[pod]
}

// outcomeOf returns the condition Succeeded of a Run that has ended; nil: it has not.
func outcomeOf(run *v1alpha1.Run) *metav1.Condition {
	c := meta.FindStatusCondition(run.Status.Conditions, v1alpha1.ConditionSucceeded)
	if c == nil || c.Status == metav1.ConditionUnknown {
		return nil
	}
	return c
}

func (i *invariants) checkChange(before, after *v1alpha1.Run) {
	if was, is := outcomeOf(before), outcomeOf(after); was != nil {
		if is == nil || was.Status != is.Status || was.Reason != is.Reason || !before.Status.CompletionTime.Equal(after.Status.CompletionTime) {
			i.report("Run %s had ended with %s %s and is %v", after.Name, was.Status, was.Reason, is)
		}
		if !equality.Semantic.DeepEqual(before.Status.Attempt, after.Status.Attempt) {
			i.report("Run %s had ended, and its attempt became %+v", after.Name, after.Status.Attempt)
		}
	}
	was, is := before.Status, after.Status
	if is.Failures < was.Failures || is.Disruptions < was.Disruptions {
		i.report("Run %s had %d failures and %d disruptions, and has %d and %d", after.Name, was.Failures, was.Disruptions, is.Failures, is.Disruptions)
	}
	if was.Attempt != nil && (is.Attempt == nil || is.Attempt.Number < was.Attempt.Number) {
		i.report("Run %s had attempt %d and has %+v", after.Name, was.Attempt.Number, is.Attempt)
	}
	if was.Progress != nil && is.Progress != nil && was.Progress.Attempt == is.Progress.Attempt && is.Progress.Sequence < was.Progress.Sequence {
		i.report("report %d of Run %s was replaced by %d", was.Progress.Sequence, after.Name, is.Progress.Sequence)
	}
}

// checkPods plays the pods of Runs through, one event after the other.
func (i *invariants) checkPods(events []watch.Event, ended map[types.UID]uint64) {
	owners := map[types.UID]types.UID{}              // of pods, as they were first
	attempts := map[types.UID]map[string]types.UID{} // the pods of a Run's attempts
	live := map[types.UID][]*corev1.Pod{}
	i.deleted = map[types.UID]bool{}
	for _, event := range events {
		pod, is := event.Object.(*corev1.Pod)
		if !is || pod.Spec.ServiceAccountName != v1alpha1.RunnerServiceAccount {
			continue
		}
		if event.Type == watch.Added {
			owner := metav1.GetControllerOf(pod)
			if owner == nil {
				i.report("pod %s was created without an owner", pod.Name)
				continue
			}
			owners[pod.UID] = owner.UID
			i.checkNewPod(pod, owner.UID, ended[owner.UID], attempts)
		}
		run, known := owners[pod.UID]
		if !known {
			continue // an administrator's
		}
		i.deleted[pod.UID] = event.Type == watch.Deleted
		live[run] = slices.DeleteFunc(live[run], func(p *corev1.Pod) bool { return p.Name == pod.Name })
		if event.Type != watch.Deleted && pod.Status.Phase != corev1.PodSucceeded && pod.Status.Phase != corev1.PodFailed {
			live[run] = append(live[run], pod)
		}
		i.checkLive(live[run])
	}
}

// checkLive checks that a Run has one live pod, at most.
func (i *invariants) checkLive(pods []*corev1.Pod) {
	if len(pods) < 2 {
		return
	}
	var names []string
	for _, pod := range pods {
		names = append(names, pod.Name)
	}
	i.report("one Run had the live pods %v at once, of which its status named %v", names, i.recordedOf(pods...))
}

// recordedOf returns the names of the pods that the status of their Run named at some time.
func (i *invariants) recordedOf(pods ...*corev1.Pod) (names []string) {
	for _, pod := range pods {
		if _, is := i.recorded[pod.UID]; is {
			names = append(names, pod.Name)
		}
	}
	return names
}

func (i *invariants) checkNewPod(pod *corev1.Pod, run types.UID, ended uint64, attempts map[types.UID]map[string]types.UID) {
	attempt := pod.Labels[v1alpha1.LabelAttempt]
	if attempts[run] == nil {
		attempts[run] = map[string]types.UID{}
	}
	at, _ := strconv.ParseUint(pod.ResourceVersion, 10, 64)
	if other, taken := attempts[run][attempt]; taken && other != pod.UID && i.isUsed(other, at) {
		i.report("attempt %s has the pods %s and %s", attempt, other, pod.UID)
	}
	attempts[run][attempt] = pod.UID
	if ended > 0 && at > ended {
		i.report("pod %s was created for a Run that had ended, of which its status named %v", pod.Name, i.recordedOf(pod))
	}
}

// checkDeletion deletes the Runs: nothing may hold them, and nothing of theirs may
// stay without an owner.
func (i *invariants) checkDeletion(ctx context.Context) error {
	var runs v1alpha1.RunList
	if err := i.client.DeleteAllOf(ctx, &v1alpha1.Run{}, client.InNamespace(i.namespace), client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		return err
	}
	if err := i.client.List(ctx, &runs, client.InNamespace(i.namespace)); err != nil {
		return err
	}
	for n := range runs.Items {
		i.report("Run %s is deleted and stays: its finalizers are %v", runs.Items[n].Name, runs.Items[n].Finalizers)
	}
	for _, list := range []client.ObjectList{&corev1.PersistentVolumeClaimList{}, &networkingv1.NetworkPolicyList{}} {
		if err := i.client.List(ctx, list, client.InNamespace(i.namespace), client.HasLabels{v1alpha1.LabelRun}); err != nil {
			return err
		}
		i.checkOwned(list)
	}
	return nil
}

// checkOwned checks that objects go with an owner.
func (i *invariants) checkOwned(list client.ObjectList) {
	_ = meta.EachListItem(list, func(item runtime.Object) error { // the function returns no error
		if o, is := item.(client.Object); is && len(o.GetOwnerReferences()) == 0 {
			i.report("%T %s has no owner, and stays", item, o.GetName())
		}
		return nil
	})
}
