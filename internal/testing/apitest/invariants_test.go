package apitest

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func version(n int, mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "run", ResourceVersion: strconv.Itoa(n)}}
	run.Status.Attempt = &v1alpha1.Attempt{Number: 2}
	for _, mod := range mods {
		mod(run)
	}
	return run
}

func ends(status metav1.ConditionStatus, reason string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: status, Reason: reason}}
		at := metav1.NewTime(time.Unix(1, 0))
		r.Status.CompletionTime = &at
	}
}

func reports(attempt int32, sequence int64) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		r.Status.Progress = &v1alpha1.RunProgress{Attempt: attempt, Sequence: sequence}
	}
}

// podOf is an event of the pod of an attempt, at a resource version.
func podOf(kind watch.EventType, attempt, at int, phase corev1.PodPhase) watch.Event {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: fmt.Sprintf("x-%d", attempt), UID: types.UID(fmt.Sprintf("pod-%d", attempt)), ResourceVersion: strconv.Itoa(at),
		Labels:          map[string]string{v1alpha1.LabelAttempt: strconv.Itoa(attempt)},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(version(1), v1alpha1.GroupVersion.WithKind("Run"))},
	}}
	pod.Spec.ServiceAccountName, pod.Status.Phase = v1alpha1.RunnerServiceAccount, phase
	return watch.Event{Type: kind, Object: pod}
}

// What breaks an invariant is reported, and nothing else is.
func TestInvariantsAreChecked(t *testing.T) {
	made, changed, gone := watch.Added, watch.Modified, watch.Deleted
	ownerless := podOf(made, 1, 1, corev1.PodPending)
	ownerless.Object.(*corev1.Pod).OwnerReferences = nil
	renamed := podOf(made, 2, 2, corev1.PodPending)
	renamed.Object.(*corev1.Pod).Labels[v1alpha1.LabelAttempt] = "1"
	cases := map[string]struct {
		runs []*v1alpha1.Run
		pods []watch.Event
		want string
	}{
		"a whole history": {
			runs: []*v1alpha1.Run{version(1), version(4, reports(2, 5)), version(9, reports(2, 6), ends(metav1.ConditionTrue, "Finished")), version(12, reports(2, 6), ends(metav1.ConditionTrue, "Finished"))},
			pods: []watch.Event{podOf(made, 1, 2, corev1.PodPending), podOf(changed, 1, 3, corev1.PodFailed), podOf(made, 2, 5, corev1.PodPending), podOf(gone, 1, 6, corev1.PodFailed), podOf(gone, 2, 11, corev1.PodRunning)},
		},
		"two live pods":           {pods: []watch.Event{podOf(made, 1, 1, corev1.PodPending), podOf(made, 2, 2, corev1.PodPending)}, want: "live pods [x-1 x-2] at once"},
		"two pods of one attempt": {pods: []watch.Event{podOf(made, 1, 1, corev1.PodFailed), renamed}, want: "attempt 1 has the pods"},
		"an attempt whose pod was deleted before it was recorded": {
			pods: []watch.Event{podOf(made, 1, 1, corev1.PodPending), podOf(gone, 1, 2, corev1.PodPending), renamed},
		},
		"an attempt whose pod was deleted after it was recorded": {
			runs: []*v1alpha1.Run{version(1, func(r *v1alpha1.Run) { r.Status.Attempt.PodUID = "pod-1" })},
			pods: []watch.Event{podOf(made, 1, 1, corev1.PodPending), podOf(gone, 1, 2, corev1.PodPending), renamed}, want: "attempt 1 has the pods",
		},
		"an attempt whose pod was deleted after it reported": {
			runs: []*v1alpha1.Run{version(1, reports(1, 5), func(r *v1alpha1.Run) { r.Status.Progress.PodUID = "pod-1" })},
			pods: []watch.Event{podOf(made, 1, 1, corev1.PodPending), podOf(gone, 1, 2, corev1.PodPending), renamed}, want: "attempt 1 has the pods",
		},
		"a pod without an owner":       {pods: []watch.Event{ownerless}, want: "created without an owner"},
		"a pod after the end":          {runs: []*v1alpha1.Run{version(5, ends(metav1.ConditionFalse, "Stopped"))}, pods: []watch.Event{podOf(made, 2, 6, corev1.PodPending)}, want: "a Run that had ended"},
		"an outcome that changes":      {runs: []*v1alpha1.Run{version(5, ends(metav1.ConditionFalse, "Stopped")), version(6, ends(metav1.ConditionTrue, "Finished"))}, want: "had ended with False Stopped"},
		"an outcome that is undone":    {runs: []*v1alpha1.Run{version(5, ends(metav1.ConditionFalse, "Stopped")), version(6)}, want: "had ended with False Stopped"},
		"an attempt after the end":     {runs: []*v1alpha1.Run{version(5, ends(metav1.ConditionFalse, "Stopped")), version(6, ends(metav1.ConditionFalse, "Stopped"), func(r *v1alpha1.Run) { r.Status.Attempt.Number = 3 })}, want: "its attempt became"},
		"an attempt number that falls": {runs: []*v1alpha1.Run{version(5), version(6, func(r *v1alpha1.Run) { r.Status.Attempt.Number = 1 })}, want: "had attempt 2 and has"},
		"a budget that grows":          {runs: []*v1alpha1.Run{version(5, func(r *v1alpha1.Run) { r.Status.Failures = 1 }), version(6)}, want: "had 1 failures"},
		"a report that is older":       {runs: []*v1alpha1.Run{version(5, reports(2, 8)), version(6, reports(2, 7))}, want: "report 8 of Run x was replaced by 7"},
		"a Run that is too large":      {runs: []*v1alpha1.Run{version(5, func(r *v1alpha1.Run) { r.Spec.Prompt = strings.Repeat("p", maxRun) })}, want: "bytes"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			i := &invariants{report: func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) }}
			var events []watch.Event
			for _, r := range tc.runs {
				events = append(events, watch.Event{Type: changed, Object: r})
			}
			i.checkPods(tc.pods, i.checkRuns(events))
			if (tc.want == "") != (len(got) == 0) || !strings.Contains(strings.Join(got, "; "), tc.want) {
				t.Errorf("it reports %q, want %q", got, tc.want)
			}
		})
	}
}
