package runnerpod

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The whole pod of an agent that runs commands, to be read.
func TestPodWithSandbox(t *testing.T) {
	golden(t, "pod-with-sandbox.yaml", equipped(t, plainly))
}

// The same with a volume, another user, and all that a closed network needs.
func TestPodWithVolumeInAClosedNetwork(t *testing.T) {
	user := int64(1000)
	golden(t, "pod-with-volume.yaml", equipped(t, closedNetwork, gen.Durable, func(a *v1alpha1.Agent) {
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{
			RunAsUser:                 &user,
			RunnerImage:               "ghcr.io/acme/runner:3",
			Labels:                    map[string]string{"team": "core", "deckhand.dev/run": "another"},
			Annotations:               map[string]string{"sidecar.istio.io/inject": "true", "deckhand.dev/task": "another", "eks.amazonaws.com/skip-containers": "none"},
			HostUsers:                 new(false),
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: "topology.kubernetes.io/zone", WhenUnsatisfiable: corev1.ScheduleAnyway}},
		}
	}))
}

func container(t *testing.T, pod *corev1.Pod, name string) corev1.Container {
	t.Helper()
	all := slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers)
	at := slices.IndexFunc(all, func(c corev1.Container) bool { return c.Name == name })
	if at < 0 {
		t.Fatalf("there is no container %s", name)
	}
	return all[at]
}

// What each container holds is what the table of docs/security.md says.
func TestWhatEachContainerHolds(t *testing.T) {
	want := map[string][]string{
		"install":                    {"mcp-issues", "mcp-wiki-internal-ac4f8ed2", "sandbox"},
		"fetch":                      {"files-0", "files-1", "secret-git", "secret-skills", "skill-0", "skills", "state", "task", "workspace"},
		"sandbox":                    {"home", "sandbox", "skills", "tmp", "workspace"},
		"mcp-issues":                 {"mcp-issues", "tmp-issues"},
		"mcp-wiki-internal-ac4f8ed2": {"mcp-wiki-internal-ac4f8ed2", "tmp-wiki-internal-ac4f8ed2", "workspace"},
		"runner":                     {"mcp-issues", "mcp-wiki-internal-ac4f8ed2", "sandbox", "secret-api", "secret-git", "secret-sonnet", "skills", "state", "task", "token", "workspace"},
	}
	pod := equipped(t, plainly)
	got := map[string][]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for _, m := range c.VolumeMounts {
			got[c.Name] = append(got[c.Name], m.Name)
		}
		slices.Sort(got[c.Name])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// Every container of every pod is restricted, whatever it is for.
func TestEveryContainerIsRestricted(t *testing.T) {
	for name, pod := range map[string]*corev1.Pod{
		"alone":        firstPod(t),
		"all there is": equipped(t, closedNetwork, gen.Durable),
		"with a request of memory alone": equipped(t, closedNetwork, withResources(corev1.ResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("2Gi")},
		})),
		"with CPU alone": equipped(t, closedNetwork, withResources(corev1.ResourceRequirements{
			Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		})),
	} {
		for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
			if c.Name == RunnerContainer { // these two it has from the pod
				c.SecurityContext.RunAsNonRoot, c.SecurityContext.SeccompProfile = pod.Spec.SecurityContext.RunAsNonRoot, pod.Spec.SecurityContext.SeccompProfile
			}
			if diff := cmp.Diff(containerSecurity(), c.SecurityContext); diff != "" {
				t.Errorf("%s: container %s: %s", name, c.Name, diff)
			}
			if c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
				t.Errorf("%s: container %s has no bounds: %v", name, c.Name, c.Resources)
			}
			if c.Resources.Requests.Memory().Cmp(*c.Resources.Limits.Memory()) > 0 {
				t.Errorf("%s: container %s requests more than its limit: %v", name, c.Name, c.Resources)
			}
		}
		if on := pod.Spec.AutomountServiceAccountToken; on == nil || *on {
			t.Errorf("%s: every container has the token", name)
		}
	}
}

// withResources gives the runner and the sandbox some resources.
func withResources(r corev1.ResourceRequirements) func(*v1alpha1.Agent) {
	return func(a *v1alpha1.Agent) {
		a.Spec.PodTemplate, a.Spec.Sandbox.Resources = &v1alpha1.PodTemplate{Resources: &r}, &r
	}
}

func TestAMissingLimitOfMemoryIsTheDefault(t *testing.T) {
	list := func(memory string) corev1.ResourceList {
		if memory == "" {
			return nil
		}
		return corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}
	}
	for name, tc := range map[string]struct{ request, limit, wantRequest, wantLimit string }{
		"nothing of memory":    {"", "", "32Mi", "256Mi"},
		"a small request":      {"100Mi", "", "100Mi", "256Mi"},
		"a request above it":   {"1Gi", "", "1Gi", "1Gi"},
		"a limit, as it is":    {"", "64Mi", "0", "64Mi"}, // which Kubernetes makes the request too
		"both, as they are":    {"1Gi", "4Gi", "1Gi", "4Gi"},
		"a limit of no memory": {"", "0", "32Mi", "256Mi"}, // Kubernetes sets none
	} {
		got := resources(&corev1.ResourceRequirements{Requests: list(tc.request), Limits: list(tc.limit)}, runnerResources)
		if got.Requests.Memory().Cmp(resource.MustParse(tc.wantRequest)) != 0 || got.Limits.Memory().Cmp(resource.MustParse(tc.wantLimit)) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The journal, the token and the keys are the runner's, on a claim as elsewhere.
func TestSandboxMountsNoFolderOfTheJournal(t *testing.T) {
	for _, c := range equipped(t, plainly, gen.Durable).Spec.InitContainers {
		for _, m := range c.VolumeMounts {
			if IsGuarded(c.Name) && isSecret(m) {
				t.Errorf("container %s mounts %s, folder %q", c.Name, m.Name, m.SubPath)
			}
		}
		for _, e := range c.Env {
			if c.Name == SandboxContainer && e.ValueFrom != nil && e.ValueFrom.FieldRef == nil {
				t.Errorf("the sandbox has a variable from elsewhere: %s", e.Name)
			}
		}
	}
}

func isSecret(m corev1.VolumeMount) bool {
	return m.Name == volumeOfClaim && (m.SubPath == "" || m.SubPath == "state") ||
		strings.HasPrefix(m.Name, "secret-") || m.Name == "token" || m.Name == "task"
}

func TestThePodHasNoMoreThanItNeeds(t *testing.T) {
	names := func(pod *corev1.Pod) (out []string) {
		for _, c := range pod.Spec.InitContainers {
			out = append(out, c.Name)
		}
		return out
	}
	sandboxed := &v1alpha1.Sandbox{Image: "debian"}
	cases := map[string]struct {
		agent func(*v1alpha1.Agent)
		want  []string
	}{
		"an agent without commands is alone": {func(a *v1alpha1.Agent) { a.Spec.Sandbox = sandboxed }, nil},
		"Shell needs a sandbox": {func(a *v1alpha1.Agent) {
			a.Spec.Sandbox, a.Spec.Tools = sandboxed, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinShell}}
		}, []string{"install", "sandbox"}},
		"Python needs one": {func(a *v1alpha1.Agent) {
			a.Spec.Sandbox, a.Spec.Tools = sandboxed, []v1alpha1.Tool{{Builtin: v1alpha1.BuiltinPython}}
		}, []string{"install", "sandbox"}},
		"a server in the sandbox needs one":             {func(a *v1alpha1.Agent) { a.Spec.Sandbox, a.Spec.Tools = sandboxed, []v1alpha1.Tool{{Toolset: "local"}} }, []string{"install", "sandbox"}},
		"a server of its own needs no sandbox":          {func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Toolset: "issues"}} }, []string{"install", "mcp-issues"}},
		"a server that is reached by URL needs neither": {func(a *v1alpha1.Agent) { a.Spec.Tools = []v1alpha1.Tool{{Toolset: "api"}} }, nil},
		"files of ConfigMaps are fetched, without sandbox": {func(a *v1alpha1.Agent) {
			a.Spec.Workspace.Files = []v1alpha1.WorkspaceFiles{{ConfigMapRef: v1alpha1.ConfigMapRef{Name: "c"}, Path: "p"}}
		}, []string{"fetch"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := New(newInput(t, gen.Run(), gen.Agent(tc.agent), gen.Toolsets()))
			if diff := cmp.Diff(tc.want, names(pod)); diff != "" {
				t.Errorf("init containers -want +got:\n%s", diff)
			}
			hasHome := slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "home" || v.Name == "tmp" })
			if hasHome != slices.Contains(tc.want, "sandbox") {
				t.Error("home and scratch files are the sandbox's alone")
			}
		})
	}
}

// The runner checks NetworkPolicies, where the pod has one and commands that it bounds. Variables
// of the sandbox are compared with the stored pod, and are the model's.
func TestOnlyTheRunnerOfASandboxChecksNetworkPolicies(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want []string
	}{
		"a pod with a sandbox": {equipped(t, closedNetwork), []string{RunnerContainer}},
		"a pod without a sandbox": {New(func() Input {
			in := newInput(t, gen.Run(), gen.Agent(), gen.Toolsets())
			closedNetwork(&in)
			return in
		}()), nil},
		"a pod without policies":        {equipped(t, func(in *Input) { closedNetwork(in); in.NetworkPolicies = false }), nil},
		"an operator without the check": {equipped(t, func(in *Input) { in.NetworkPolicies = true }), nil},
	} {
		var got []string
		for _, c := range slices.Concat(tc.pod.Spec.InitContainers, tc.pod.Spec.Containers) {
			if slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == task.EnvNetworkCheck }) {
				got = append(got, c.Name)
			}
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// The credentials of a repository are only where they are used.
func TestRunnerHasTheKeyOfARepositoryOnlyToPublish(t *testing.T) {
	for publish, want := range map[v1alpha1.Publish]bool{v1alpha1.PublishBranch: true, v1alpha1.PublishNone: false, "": false} {
		pod := equipped(t, plainly, func(a *v1alpha1.Agent) { a.Spec.Workspace.Git.Publish = publish })
		has := slices.ContainsFunc(container(t, pod, RunnerContainer).VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "secret-git" })
		if has != want {
			t.Errorf("publish %q: the runner has the key: %t", publish, has)
		}
	}
	pod := equipped(t, plainly)
	for _, v := range pod.Spec.Volumes {
		if v.Name == "secret-git" && (len(v.Secret.Items) > 0 || v.Secret.Optional == nil || !*v.Secret.Optional) {
			t.Errorf("the repository's Secret is mounted as %+v, want it whole and optional", v.Secret)
		}
	}
}

// Custom runners do not know what the installation's pods need: what fills and
// watches the pod is the installation's own.
func TestInstallAndFetchAreTheInstallationsOwn(t *testing.T) {
	pod := equipped(t, plainly, func(a *v1alpha1.Agent) { a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunnerImage: "acme/runner:3"} })
	for name, want := range map[string]string{"install": "runner:1", "fetch": "runner:1", "runner": "acme/runner:3", "sandbox": "golang:1.26"} {
		if got := container(t, pod, name).Image; got != want {
			t.Errorf("%s has the image %s, want %s", name, got, want)
		}
	}
}

// A kubelet reads $(NAME) in values; people who wrote a price did not mean that.
func TestValuesAreLiteral(t *testing.T) {
	pod := equipped(t, plainly)
	for name, want := range map[string]string{"sandbox": "$$(HOSTNAME) costs $$5", "mcp-issues": "https://issues.example.com?q=$$(X)"} {
		if env := container(t, pod, name).Env; !slices.ContainsFunc(env, func(e corev1.EnvVar) bool { return e.Value == want }) {
			t.Errorf("%s has %v, want a value %q", name, env, want)
		}
	}
}

func TestResourcesAreAsConfigured(t *testing.T) {
	said := &corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("8Gi")},
	}
	pod := equipped(t, plainly, func(a *v1alpha1.Agent) { a.Spec.Sandbox.Resources = said })
	if diff := cmp.Diff(*said, container(t, pod, SandboxContainer).Resources); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]string{"mcp-issues": "512Mi", "runner": "256Mi", "fetch": "256Mi"} {
		limits := container(t, pod, name).Resources.Limits
		if got := limits.Memory().String(); got != want {
			t.Errorf("%s may have %s, want %s", name, got, want)
		}
	}
}

// The kernel shares CPU time by requests: without one, the runner could get none while
// commands take all.
func TestContainersRequestCPUUnlessConfigured(t *testing.T) {
	list := func(name corev1.ResourceName, value string) corev1.ResourceList {
		return corev1.ResourceList{name: resource.MustParse(value)}
	}
	for name, tc := range map[string]struct {
		configured *corev1.ResourceRequirements
		want       string
	}{
		"nothing configured":                {nil, "10m"},
		"nothing in it":                     {&corev1.ResourceRequirements{}, "10m"},
		"only memory":                       {&corev1.ResourceRequirements{Requests: list(corev1.ResourceMemory, "2Gi")}, "10m"},
		"only a memory limit":               {&corev1.ResourceRequirements{Limits: list(corev1.ResourceMemory, "2Gi")}, "10m"},
		"a request":                         {&corev1.ResourceRequirements{Requests: list(corev1.ResourceCPU, "500m")}, "500m"},
		"a limit, which is the request too": {&corev1.ResourceRequirements{Limits: list(corev1.ResourceCPU, "2")}, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			pod := equipped(t, plainly, func(a *v1alpha1.Agent) {
				a.Spec.Sandbox.Resources = tc.configured
				a.Spec.PodTemplate = &v1alpha1.PodTemplate{Resources: tc.configured}
			})
			for _, one := range []string{SandboxContainer, RunnerContainer} {
				requests := container(t, pod, one).Resources.Requests
				if got := requests.Cpu().String(); got != tc.want {
					t.Errorf("%s requests %s, want %s", one, got, tc.want)
				}
			}
		})
	}
}

// A pod that outlives its node may be moved; one with the work in it may not.
func TestDurablePodsMayBeEvicted(t *testing.T) {
	for _, key := range []string{"cluster-autoscaler.kubernetes.io/safe-to-evict", "karpenter.sh/do-not-disrupt"} {
		if _, is := equipped(t, plainly, gen.Durable).Annotations[key]; is {
			t.Errorf("a durable pod has %s", key)
		}
		if _, is := equipped(t, plainly).Annotations[key]; !is {
			t.Errorf("a pod that is not lacks %s", key)
		}
	}
}
