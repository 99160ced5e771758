package run

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A decision is taken again when something changed that it depends on, and only
// then: a runner reports often.
func TestWhatOfARunMatters(t *testing.T) {
	reported := func(r *v1alpha1.Run) { r.Status.Progress = &v1alpha1.RunProgress{Attempt: 1, Sequence: 1} }
	cases := map[string]struct {
		was, is func(*v1alpha1.Run)
		want    bool
	}{
		"more of the same progress":   {reported, func(r *v1alpha1.Run) { reported(r); r.Status.Progress.Sequence, r.Status.Progress.Counts.Steps = 2, 7 }, false},
		"a condition":                 {func(*v1alpha1.Run) {}, func(r *v1alpha1.Run) { r.Status.Conditions[0].Message = "other" }, false},
		"the first report":            {func(*v1alpha1.Run) {}, reported, true},
		"effects":                     {reported, func(r *v1alpha1.Run) { reported(r); begun(r.Status.Progress) }, true},
		"a result":                    {reported, func(r *v1alpha1.Run) { reported(r); commits("Finished", "")(r.Status.Progress) }, true},
		"what it waits for":           {reported, func(r *v1alpha1.Run) { reported(r); r.Status.Progress.State = "AwaitingAnswer" }, true},
		"a question":                  {reported, func(r *v1alpha1.Run) { reported(r); awaits("", question("s3c1", ""))(r.Status.Progress) }, true},
		"what it acted on":            {reported, func(r *v1alpha1.Run) { reported(r); acts("d")(r.Status.Progress) }, true},
		"a claim":                     {func(*v1alpha1.Run) {}, func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} }, true},
		"a recorded pod":              {func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1} }, func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, PodUID: "u"} }, true},
		"what a person wants":         {func(*v1alpha1.Run) {}, func(r *v1alpha1.Run) { r.Generation = 2 }, true},
		"the end":                     {func(*v1alpha1.Run) {}, func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} }, true},
		"the beginning of its delete": {func(*v1alpha1.Run) {}, func(r *v1alpha1.Run) { r.DeletionTimestamp = &metav1.Time{Time: gen.Noon} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := runChanged.Update(event.UpdateEvent{ObjectOld: gen.Run(tc.was), ObjectNew: gen.Run(tc.is)}); got != tc.want {
				t.Errorf("it matters: %t, want %t", got, tc.want)
			}
		})
	}
}

func TestWhatOfAPodMatters(t *testing.T) {
	status := func(state corev1.ContainerState) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.RunnerContainer, State: state}}
		}
	}
	nothing := func(*corev1.Pod) {}
	creating := status(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ContainerCreating"}})
	running := status(corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(gen.Noon.Add(time.Second))}})
	cases := map[string]struct {
		was, is func(*corev1.Pod)
		want    bool
	}{
		"an address":                  {nothing, func(p *corev1.Pod) { p.Status.PodIP = "10.0.0.1" }, false},
		"its container being made":    {nothing, creating, false},
		"its runner having started":   {creating, running, false},
		"its runner having ended":     {running, status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}), true},
		"an image that is not pulled": {creating, status(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}), true},
		"no node taking it": {nothing, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "none"}}
		}, true},
		"the end of its sidecars, too": {status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}), func(p *corev1.Pod) {
			status(corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}})(p)
			p.Status.Phase = corev1.PodFailed
		}, true},
		"its egress label":  {running, func(p *corev1.Pod) { running(p); p.Labels = map[string]string{v1alpha1.LabelEgress: "other"} }, true},
		"a label of others": {running, func(p *corev1.Pod) { running(p); p.Labels = map[string]string{"team": "red"} }, false},
		"its deletion":      {running, func(p *corev1.Pod) { running(p); p.DeletionTimestamp = &metav1.Time{Time: gen.Noon} }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			was, is := &corev1.Pod{}, &corev1.Pod{}
			tc.was(was)
			tc.is(is)
			if got := podChanged.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: is}); got != tc.want {
				t.Errorf("it matters: %t, want %t", got, tc.want)
			}
		})
	}
}

// A NetworkPolicy is restored when it was deleted, or when what it allows was changed. The operator creates
// it itself.
func TestWhatOfANetworkPolicyMatters(t *testing.T) {
	policy := func(change func(*networkingv1.NetworkPolicy)) *networkingv1.NetworkPolicy {
		p := &networkingv1.NetworkPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{v1alpha1.LabelEgress: "a"}}}
		p.Spec.PodSelector.MatchLabels = map[string]string{v1alpha1.LabelEgress: "a"}
		change(p)
		return p
	}
	was := policy(func(*networkingv1.NetworkPolicy) {})
	for name, tc := range map[string]struct {
		change func(*networkingv1.NetworkPolicy)
		want   bool
	}{
		"nothing":                  {func(*networkingv1.NetworkPolicy) {}, false},
		"a note of others":         {func(p *networkingv1.NetworkPolicy) { p.Annotations = map[string]string{"team": "red"} }, false},
		"a label of others":        {func(p *networkingv1.NetworkPolicy) { p.Labels["team"] = "red" }, false},
		"the label of its pods":    {func(p *networkingv1.NetworkPolicy) { p.Labels[v1alpha1.LabelEgress] = "b" }, true},
		"the pods that it selects": {func(p *networkingv1.NetworkPolicy) { p.Spec.PodSelector.MatchLabels = nil }, true},
		"the destinations":         {func(p *networkingv1.NetworkPolicy) { p.Spec.Egress = []networkingv1.NetworkPolicyEgressRule{{}} }, true},
	} {
		if got := networkPolicyLost.Update(event.UpdateEvent{ObjectOld: was, ObjectNew: policy(tc.change)}); got != tc.want {
			t.Errorf("%s was changed: it matters: %t, want %t", name, got, tc.want)
		}
	}
	if !networkPolicyLost.Delete(event.DeleteEvent{Object: was}) || networkPolicyLost.Create(event.CreateEvent{Object: was}) || networkPolicyLost.Generic(event.GenericEvent{Object: was}) {
		t.Error("its deletion matters, its creation and an event of another source do not")
	}
}
