package runnerpod

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// podOf returns a pod with a UID and, if it is not empty, a task that names the UID of a Run.
func podOf(uid types.UID, taskOf string, mods ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount}}
	if taskOf != "" {
		pod.Annotations = map[string]string{v1alpha1.AnnotationTask: fmt.Sprintf(`{"run":{"uid":%q},"attempt":3}`, taskOf)}
	}
	for _, mod := range mods {
		mod(pod)
	}
	return pod
}

func ownedBy(run *v1alpha1.Run) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))}
	}
}

func TestWhosePodItIs(t *testing.T) {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "fix", UID: "mine"}}
	recorded := run.DeepCopy()
	recorded.Status.Attempt = &v1alpha1.Attempt{PodUID: "p"}
	byUser := func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }
	for name, tc := range map[string]struct {
		run  *v1alpha1.Run
		pod  *corev1.Pod
		want bool
	}{
		"its task names the Run":                        {run, podOf("p", "mine"), true},
		"its task names an earlier Run of the name":     {run, podOf("p", "another", ownedBy(run)), false},
		"it is recorded":                                {recorded, podOf("p", ""), true},
		"another is recorded, and its task names a Run": {recorded, podOf("q", "mine"), true},
		"another is recorded, and it has no task":       {recorded, podOf("q", ""), false},
		"it has an owner and no task":                   {run, podOf("p", "", ownedBy(run)), true},
		"it has neither":                                {run, podOf("p", ""), false},
		"a user's with the owner":                       {run, podOf("p", "", ownedBy(run), byUser), false},
		"a user's with the task":                        {run, podOf("p", "mine", byUser), false},
		"a user's that is recorded":                     {recorded, podOf("p", "", byUser), false},
		"no UID is recorded, and it has none":           {&v1alpha1.Run{Status: v1alpha1.RunStatus{Attempt: &v1alpha1.Attempt{}}}, podOf("", ""), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := BelongsTo(tc.pod, tc.run); got != tc.want {
				t.Errorf("it belongs to the Run: %t", got)
			}
		})
	}
}

func TestTheAttemptOfAPod(t *testing.T) {
	labeled := func(value string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{v1alpha1.LabelAttempt: value} }
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want int
	}{
		"its task says so":          {podOf("p", "mine", labeled("7")), 3},
		"its label says so":         {podOf("p", "", labeled("7")), 7},
		"its label is no number":    {podOf("p", "", labeled("7th")), 0},
		"its label is out of range": {podOf("p", "", labeled("99999999999999999999")), 0},
		"nothing says so":           {podOf("p", ""), 0},
		"its task cannot be read":   {podOf("p", "", func(p *corev1.Pod) { p.Annotations = map[string]string{v1alpha1.AnnotationTask: `{"attempt":"3"`} }), 0},
		"its task is of another type": {podOf("p", "", labeled("2"), func(p *corev1.Pod) {
			p.Annotations = map[string]string{v1alpha1.AnnotationTask: `{"attempt":3,"limits":[]}`}
		}), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := AttemptOf(tc.pod); got != tc.want {
				t.Errorf("attempt %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhetherAPodIsAtWork(t *testing.T) {
	ended := corev1.ContainerStatus{Name: RunnerContainer, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 1}}}
	running := corev1.ContainerStatus{Name: RunnerContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}
	other := ended
	other.Name = "other"
	for name, tc := range map[string]struct {
		phase                        corev1.PodPhase
		containers                   []corev1.ContainerStatus
		alive, stopping, isKnown, is bool // is: it has ended
	}{
		"nothing is known":             {corev1.PodPending, nil, true, false, false, false},
		"it runs":                      {corev1.PodRunning, []corev1.ContainerStatus{running}, true, false, true, false},
		"another container has ended":  {corev1.PodRunning, []corev1.ContainerStatus{other, running}, true, false, true, false},
		"only another one is known":    {corev1.PodRunning, []corev1.ContainerStatus{other}, true, false, false, false},
		"the runner has ended":         {corev1.PodRunning, []corev1.ContainerStatus{other, ended}, false, true, true, true},
		"it has succeeded":             {corev1.PodSucceeded, []corev1.ContainerStatus{ended}, false, false, true, true},
		"it has failed, and nobody is": {corev1.PodFailed, nil, false, false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: corev1.PodStatus{Phase: tc.phase, ContainerStatuses: tc.containers}}
			got := []bool{IsAlive(pod), IsStopping(pod), RunnerStatus(pod) != nil, Terminated(pod) != nil}
			if diff := cmp.Diff([]bool{tc.alive, tc.stopping, tc.isKnown, tc.is}, got); diff != "" {
				t.Errorf("alive, stopping, known, ended: -want +got:\n%s", diff)
			}
		})
	}
	if IsAlive(nil) || IsStopping(nil) || RunnerStatus(nil) != nil || Terminated(nil) != nil {
		t.Error("no pod has a state")
	}
}

func TestHowLongAVolumeIsKept(t *testing.T) {
	now := gen.Noon
	claim := func(retain stored.Retain, retention string) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		c.Annotations = map[string]string{v1alpha1.AnnotationRetain: string(retain), v1alpha1.AnnotationRetention: retention}
		return c
	}
	deleted := claim(stored.RetainNever, "1h")
	deleted.DeletionTimestamp = &metav1.Time{Time: now}
	for name, tc := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		outcome metav1.ConditionStatus
		ended   time.Duration // ago
		expired bool
		left    time.Duration
	}{
		"never":                            {claim(stored.RetainNever, "1h"), metav1.ConditionFalse, 0, true, 0},
		"always, its time has not passed":  {claim(stored.RetainAlways, "1h"), metav1.ConditionTrue, 59 * time.Minute, false, time.Minute},
		"always, its time has passed":      {claim(stored.RetainAlways, "1h"), metav1.ConditionTrue, time.Hour, true, 0},
		"always, long ago":                 {claim(stored.RetainAlways, "1h"), metav1.ConditionTrue, 9 * time.Hour, true, 0},
		"always, without a time":           {claim(stored.RetainAlways, ""), metav1.ConditionTrue, time.Hour, false, 23 * time.Hour},
		"on failure, and it succeeded":     {claim(stored.RetainOnFailure, "1h"), metav1.ConditionTrue, 0, true, 0},
		"on failure, and it failed":        {claim(stored.RetainOnFailure, "1h"), metav1.ConditionFalse, 10 * time.Minute, false, 50 * time.Minute},
		"on failure, and that is long ago": {claim(stored.RetainOnFailure, "1h"), metav1.ConditionFalse, 2 * time.Hour, true, 0},
		"it is being deleted":              {deleted, metav1.ConditionTrue, 9 * time.Hour, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			run := gen.Run()
			runstatus.Outcome{Status: tc.outcome, Reason: "Ended"}.WriteStatus(&run.Status, run, now.Add(-tc.ended))
			run.Status.CompletionTime = &metav1.Time{Time: now.Add(-tc.ended)}
			expired, left := RetentionExpired(run, tc.claim, now)
			if expired != tc.expired || left != tc.left {
				t.Errorf("expired %t, left %s; want %t and %s", expired, left, tc.expired, tc.left)
			}
		})
	}
}

func TestWhetherAVolumeIsInUse(t *testing.T) {
	mounts := func(phase corev1.PodPhase, volumes ...corev1.VolumeSource) corev1.Pod {
		pod := corev1.Pod{Status: corev1.PodStatus{Phase: phase}}
		for _, v := range volumes {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: v})
		}
		return pod
	}
	mine := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "mine"}}
	other := corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "other"}}
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		want bool
	}{
		"no pod":                       {nil, false},
		"a pod mounts it":              {[]corev1.Pod{mounts(corev1.PodRunning, other), mounts(corev1.PodRunning, corev1.VolumeSource{}, other, mine)}, true},
		"a pod that waits mounts it":   {[]corev1.Pod{mounts(corev1.PodPending, mine)}, true},
		"a pod that ended mounts it":   {[]corev1.Pod{mounts(corev1.PodFailed, mine), mounts(corev1.PodSucceeded, mine)}, false},
		"a pod mounts another":         {[]corev1.Pod{mounts(corev1.PodRunning, other)}, false},
		"a pod has volumes of no kind": {[]corev1.Pod{mounts(corev1.PodRunning, corev1.VolumeSource{})}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := InUse("mine", tc.pods); got != tc.want {
				t.Errorf("it is in use: %t", got)
			}
		})
	}
}
