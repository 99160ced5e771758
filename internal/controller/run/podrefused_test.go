package run

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func mounting(volume, path string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := sandboxOf(p)
		s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
}

// The operator may die between making a pod and looking at it.
func TestAlteredPodIsNotAdopted(t *testing.T) {
	c := newClusterOf(t, gen.Run(), gen.Agent(gen.Coder), gen.Toolsets())
	c.begin()
	pod := c.pod(1)
	mounting("token", "/var/run/cloud")(pod)
	c.run.Status.Attempt.PodUID = "" // not recorded
	p := c.step()
	if p.recordPod != nil || reasonOf(c.run) != v1alpha1.ReasonSandboxAltered {
		t.Fatalf("the Run is %s, and adopts %v", reasonOf(c.run), p.recordPod)
	}
	for _, want := range []string{"/var/run/cloud", "sandbox.allowInjected"} {
		if !strings.Contains(messageOf(c.run), want) {
			t.Errorf("the message does not say %s: %s", want, messageOf(c.run))
		}
	}
	c.step()
	if len(c.pods) > 0 {
		t.Error("the pod stays")
	}
}

func sandboxOf(p *corev1.Pod) *corev1.Container {
	return &p.Spec.InitContainers[slices.IndexFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == runnerpod.SandboxContainer })]
}
