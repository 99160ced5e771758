package run

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestStartStageNamesWhatThePodShows(t *testing.T) {
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	waits := func(reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
	}
	placed := []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}
	initializing := []corev1.ContainerStatus{{Name: "runner", State: waits("PodInitializing", "")}}
	cases := map[string]struct {
		status corev1.PodStatus
		want   string
	}{
		"no cluster node": {
			corev1.PodStatus{},
			"pod x-1, which the scheduler has not given to a cluster node",
		},
		"a cluster node that does nothing": {
			corev1.PodStatus{Conditions: placed},
			"pod x-1, which the kubelet of its cluster node has not started",
		},
		"an init container that does not end": {
			corev1.PodStatus{Conditions: placed, ContainerStatuses: initializing, InitContainerStatuses: []corev1.ContainerStatus{{Name: "install", Ready: true}, {Name: "fetch", State: running}}},
			"pod x-1, whose container fetch is still running; its log may say why: kubectl logs x-1 -c fetch -n team-a",
		},
		"an init container that is ready": {
			corev1.PodStatus{Conditions: placed, ContainerStatuses: initializing, InitContainerStatuses: []corev1.ContainerStatus{{Name: "sandbox", State: running, Ready: true}}},
			"pod x-1, which the kubelet of its cluster node has not started",
		},
		"a container that is being created": {
			corev1.PodStatus{Conditions: placed, ContainerStatuses: []corev1.ContainerStatus{{Name: "runner", State: waits("ContainerCreating", "no room")}}},
			"pod x-1, whose container runner waits (ContainerCreating: no room)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Status: tc.status}
			pod.Name, pod.Namespace = "x-1", "team-a"
			if got := startStage(pod); got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
