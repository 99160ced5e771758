package runnerpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func quantities(pairs ...string) corev1.ResourceList {
	out := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		out[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return out
}

// byQuota are what a quota can require of each container.
func byQuota(in *Input) {
	in.Defaults.Resources = corev1.ResourceRequirements{
		Requests: quantities("ephemeral-storage", "100Mi"),
		Limits:   quantities("cpu", "2", "ephemeral-storage", "2Gi"),
	}
}

// A ResourceQuota may require requests and limits of every container, also of those that end before
// the runner starts. An Agent that sets a part gets the rest.
func TestEveryContainerHasTheResourcesOfTheInstallation(t *testing.T) {
	agents := map[string]func(*v1alpha1.Agent){
		"an Agent without resources": func(*v1alpha1.Agent) {},
		"an Agent with its own memory": func(a *v1alpha1.Agent) {
			own := &corev1.ResourceRequirements{Limits: quantities("memory", "3Gi")}
			a.Spec.PodTemplate = &v1alpha1.PodTemplate{Resources: own}
			a.Spec.Sandbox.Resources = own
		},
	}
	for name, mod := range agents {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, gen.Run(), gen.Agent(gen.Coder, gen.Durable, mod), gen.Toolsets())
			byQuota(&in)
			claim := NewVolumeClaim(in)
			all := containersIn(New(in))
			all = append(all, FilesPodOf(claim).Pod(in.Run, claim.Name, WorkspaceFolder, "").Spec.Containers...)
			if len(all) < 6 {
				t.Fatalf("only %d containers", len(all))
			}
			for _, c := range all {
				isComplete(t, c)
			}
		})
	}
}

func isComplete(t *testing.T, c corev1.Container) {
	t.Helper()
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		request, requested := c.Resources.Requests[name]
		limit, limited := c.Resources.Limits[name] // which Kubernetes makes the request too
		if !limited || requested && request.Cmp(limit) > 0 {
			t.Errorf("container %s has the request %s and the limit %s of %s", c.Name, &request, &limit, name)
		}
	}
}

func TestResourcesOfTheInstallation(t *testing.T) {
	own := corev1.ResourceRequirements{Requests: quantities("cpu", "10m", "memory", "64Mi"), Limits: quantities("memory", "1Gi")}
	for name, tc := range map[string]struct {
		installation, want corev1.ResourceRequirements
	}{
		"none": {corev1.ResourceRequirements{}, own},
		"a limit of CPU": {
			corev1.ResourceRequirements{Limits: quantities("cpu", "2")},
			corev1.ResourceRequirements{Requests: own.Requests, Limits: quantities("memory", "1Gi", "cpu", "2")},
		},
		"a limit below the request": {
			corev1.ResourceRequirements{Limits: quantities("memory", "32Mi", "cpu", "5m")},
			corev1.ResourceRequirements{Requests: quantities("cpu", "5m", "memory", "32Mi"), Limits: quantities("memory", "32Mi", "cpu", "5m")},
		},
		"a request above the limit": {
			corev1.ResourceRequirements{Requests: quantities("memory", "2Gi")},
			corev1.ResourceRequirements{Requests: quantities("cpu", "10m", "memory", "2Gi"), Limits: quantities("memory", "2Gi")},
		},
	} {
		got := Defaults{Resources: tc.installation}.standard(own)
		for _, pair := range [][2]corev1.ResourceList{{got.Requests, tc.want.Requests}, {got.Limits, tc.want.Limits}} {
			if len(pair[0]) != len(pair[1]) {
				t.Errorf("%s: %v, want %v", name, pair[0], pair[1])
			}
			for kind, want := range pair[1] {
				if is := pair[0][kind]; is.Cmp(want) != 0 {
					t.Errorf("%s: %s is %s, want %s", name, kind, &is, &want)
				}
			}
		}
	}
	if len(own.Limits) != 1 {
		t.Error("the standard resources were changed")
	}
}
