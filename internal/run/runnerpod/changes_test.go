package runnerpod

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// alterations are what webhooks do to pods. The empty answer is that nothing was
// done that counts.
var alterations = map[string]struct {
	alter   func(*corev1.Pod)
	allowed []string
	want    string
}{
	"nothing at all": {alter: func(*corev1.Pod) {}},
	"what every cluster fills in": {alter: func(p *corev1.Pod) {
		mode, propagation := corev1.DefaultProcMount, corev1.MountPropagationNone
		s := sandboxOf(p)
		s.ImagePullPolicy, s.SecurityContext.ProcMount, s.VolumeMounts[0].MountPropagation = corev1.PullAlways, &mode, &propagation
		s.Resources.Limits[corev1.ResourceCPU] = *s.Resources.Requests.Cpu()
		p.Spec.NodeName, p.Spec.SchedulerName = "n", "default"
	}},
	"a token in every container, as the token of a ServiceAccount is": {
		alter: func(p *corev1.Pod) {
			s := sandboxOf(p)
			s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: "kube-api-access", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"})
		},
		want: "container sandbox has the mount /var/run/secrets/kubernetes.io/serviceaccount of the volume kube-api-access",
	},
	"a mount that is allowed by its path":   {alter: mounting("token", "/var/run/cloud"), allowed: []string{"/var/run/cloud"}},
	"a mount that is allowed by its volume": {alter: mounting("token", "/var/run/cloud"), allowed: []string{"token"}},
	"a mount where another is allowed": {
		alter: mounting("token", "/var/run/cloud"), allowed: []string{"/var/run/clouds"},
		want: "the mount /var/run/cloud of the volume token",
	},
	"a mount of the journal": {alter: mounting("state", "/state"), want: "the mount /state of the volume state"},
	"the workspace elsewhere on its volume": {
		alter: func(p *corev1.Pod) { sandboxOf(p).VolumeMounts[0].SubPath = "../state" },
		want:  "the mount /workspace of the volume workspace",
	},
	"a mount that is taken away": {
		alter: func(p *corev1.Pod) { s := sandboxOf(p); s.VolumeMounts = s.VolumeMounts[1:] },
		want:  "lacks the mount /workspace",
	},
	"a variable": {
		alter: func(p *corev1.Pod) {
			s := sandboxOf(p)
			s.Env = append(s.Env, corev1.EnvVar{Name: "AWS_ROLE_ARN", Value: "x"})
		},
		want: "container sandbox has the variable AWS_ROLE_ARN",
	},
	"a variable that is allowed": {
		alter:   func(p *corev1.Pod) { s := sandboxOf(p); s.Env = append(s.Env, corev1.EnvVar{Name: "TZ", Value: "UTC"}) },
		allowed: []string{"TZ"},
	},
	"a variable with another value": {
		alter: func(p *corev1.Pod) { sandboxOf(p).Env[0].Value = "-toolexec=/tmp/evil" },
		want:  "the variable GOFLAGS",
	},
	"all variables of a Secret": {
		alter: func(p *corev1.Pod) {
			s := sandboxOf(p)
			s.EnvFrom = []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "keys"}}}}
		},
		want: "all variables of keys",
	},
	"another image":                  {alter: func(p *corev1.Pod) { sandboxOf(p).Image = "evil" }, want: "the image evil instead of golang:1.26"},
	"the image pinned to its digest": {alter: func(p *corev1.Pod) { sandboxOf(p).Image += "@sha256:0123" }},
	"another command":                {alter: func(p *corev1.Pod) { sandboxOf(p).Command = []string{"sh"} }, want: "another command"},
	"arguments":                      {alter: func(p *corev1.Pod) { sandboxOf(p).Args = []string{"-open"} }, want: "another command"},
	"a hook of the kubelet":          {alter: func(p *corev1.Pod) { sandboxOf(p).Lifecycle = &corev1.Lifecycle{} }, want: "another probes and hooks"},
	"privileges":                     {alter: func(p *corev1.Pod) { yes := true; sandboxOf(p).SecurityContext.AllowPrivilegeEscalation = &yes }, want: "another security context"},
	"no security context":            {alter: func(p *corev1.Pod) { sandboxOf(p).SecurityContext = nil }, want: "another security context"},
	"a sandbox that is no sidecar":   {alter: func(p *corev1.Pod) { sandboxOf(p).RestartPolicy = nil }, want: "another restart policy"},
	"a sandbox that is gone":         {alter: func(p *corev1.Pod) { sandboxOf(p).Name = "other" }, want: "container sandbox was removed"},
	"a container before those that were asked for": {alter: func(p *corev1.Pod) {
		p.Spec.InitContainers = slices.Insert(p.Spec.InitContainers, 0, corev1.Container{Name: "mesh", Image: "mesh"})
	}},
	"the sandbox before all others": {alter: func(p *corev1.Pod) {
		s := *sandboxOf(p)
		rest := slices.DeleteFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == SandboxContainer })
		p.Spec.InitContainers = slices.Insert(rest, 0, s)
	}},
	"another working directory": {alter: func(p *corev1.Pod) { sandboxOf(p).WorkingDir = "/" }, want: "another working directory"},
	"a device": {
		alter: func(p *corev1.Pod) {
			sandboxOf(p).VolumeDevices = []corev1.VolumeDevice{{Name: "d", DevicePath: "/dev/d"}}
		},
		want: "another devices",
	},
	"a probe of its life":      {alter: func(p *corev1.Pod) { sandboxOf(p).LivenessProbe = &corev1.Probe{} }, want: "another probes and hooks"},
	"a probe of its readiness": {alter: func(p *corev1.Pod) { sandboxOf(p).ReadinessProbe = &corev1.Probe{} }, want: "another probes and hooks"},
	"a probe of its start":     {alter: func(p *corev1.Pod) { sandboxOf(p).StartupProbe = &corev1.Probe{} }, want: "another probes and hooks"},
	"a claim of a device": {
		alter: func(p *corev1.Pod) { sandboxOf(p).Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}} },
		want:  "another resource claims",
	},
	"/proc without a mask": {
		alter: func(p *corev1.Pod) { mode := corev1.UnmaskedProcMount; sandboxOf(p).SecurityContext.ProcMount = &mode },
		want:  "another security context",
	},
	"an image whose name only begins like it": {alter: func(p *corev1.Pod) { sandboxOf(p).Image += "-evil@sha256:0123" }, want: "the image golang:1.26-evil@sha256:0123"},
	"an image with another tag":               {alter: func(p *corev1.Pod) { sandboxOf(p).Image += ".1" }, want: "the image golang:1.26.1"},
	"all variables of a ConfigMap": {
		alter: func(p *corev1.Pod) {
			sandboxOf(p).EnvFrom = []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "settings"}}}}
		},
		want: "all variables of settings",
	},
	"all variables of something new": {
		alter: func(p *corev1.Pod) { sandboxOf(p).EnvFrom = []corev1.EnvFromSource{{}} },
		want:  "all variables of another object",
	},
	"a mount that became read-only": {alter: func(p *corev1.Pod) { sandboxOf(p).VolumeMounts[0].ReadOnly = true }},
	"a mount that may be written": {
		alter: func(p *corev1.Pod) {
			for i := range p.Spec.InitContainers {
				for j := range p.Spec.InitContainers[i].VolumeMounts {
					p.Spec.InitContainers[i].VolumeMounts[j].ReadOnly = false
				}
			}
		},
		want: "has the mount /workspace of the volume workspace",
	},
	"a mount whose folder is computed": {
		alter: func(p *corev1.Pod) { sandboxOf(p).VolumeMounts[0].SubPathExpr = "$(HOME)" },
		want:  "has the mount /workspace",
	},
	"a mount that spreads to the node": {
		alter: func(p *corev1.Pod) {
			both := corev1.MountPropagationBidirectional
			sandboxOf(p).VolumeMounts[0].MountPropagation = &both
		},
		want: "has the mount /workspace",
	},
	"processes that are shared no more": {alter: func(p *corev1.Pod) { no := false; p.Spec.ShareProcessNamespace = &no }},
	"the processes of the node":         {alter: func(p *corev1.Pod) { p.Spec.HostPID = true }, want: "it sees the processes of its node"},
	"the memory of the node":            {alter: func(p *corev1.Pod) { p.Spec.HostIPC = true }, want: "it shares memory with its node"},
	"another group":                     {alter: func(p *corev1.Pod) { id := int64(0); p.Spec.SecurityContext.RunAsGroup = &id }, want: "its user or group is another"},
	"no security context of the pod":    {alter: func(p *corev1.Pod) { p.Spec.SecurityContext = nil }, want: "its user or group is another"},
	"a volume that is gone": {
		alter: func(p *corev1.Pod) {
			p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "home" })
		},
		want: "the volume home is another",
	},
	"a volume that only the runner mounts": {alter: func(p *corev1.Pod) {
		p.Spec.Volumes = slices.DeleteFunc(p.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "token" })
	}},
	"a sidecar that mounts a path that is allowed": {
		alter: func(p *corev1.Pod) {
			p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "scan", VolumeMounts: []corev1.VolumeMount{{Name: "workspace", MountPath: "/scan"}}})
		},
		allowed: []string{"/scan"},
	},
	"two changes": {
		alter: func(p *corev1.Pod) { sandboxOf(p).WorkingDir = "/"; p.Spec.HostPID = true },
		want:  "container sandbox has another working directory; the pod is another: it sees the processes of its node",
	},
	"an SELinux type without confinement": {alter: hasSELinux(corev1.SELinuxOptions{Type: "spc_t"}), want: "the pod is another: its SELinux options leave the confinement of containers"},
	"another role of SELinux":             {alter: hasSELinux(corev1.SELinuxOptions{Role: "sysadm_r"}), want: "its SELinux options leave the confinement of containers"},
	"another user of SELinux":             {alter: hasSELinux(corev1.SELinuxOptions{User: "unconfined_u"}), want: "its SELinux options leave the confinement of containers"},
	"a level of SELinux":                  {alter: hasSELinux(corev1.SELinuxOptions{Level: "s0:c1,c2"})},
	"the SELinux type of containers":      {alter: hasSELinux(corev1.SELinuxOptions{Type: "container_t", Level: "s0:c1,c2"})},
	"no AppArmor profile": {
		alter: hasAppArmor(corev1.AppArmorProfileTypeUnconfined), want: "the pod is another: its AppArmor profile is Unconfined",
	},
	"the AppArmor profile of the container runtime": {alter: hasAppArmor(corev1.AppArmorProfileTypeRuntimeDefault)},
	"processes that all see":                        {alter: func(p *corev1.Pod) { yes := true; p.Spec.ShareProcessNamespace = &yes }, want: "its containers share their processes"},
	"the network of the node":                       {alter: func(p *corev1.Pod) { p.Spec.HostNetwork = true }, want: "it has the network of its node"},
	"another user":                                  {alter: func(p *corev1.Pod) { id := int64(0); p.Spec.SecurityContext.RunAsUser = &id }, want: "its user or group is another"},
	"a volume of ours that is another": {
		alter: func(p *corev1.Pod) {
			for i := range p.Spec.Volumes {
				if p.Spec.Volumes[i].Name == "tmp" {
					p.Spec.Volumes[i].VolumeSource = corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "keys"}}
				}
			}
		},
		want: "the volume tmp is another",
	},
	"a sidecar that minds its own business": {alter: func(p *corev1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "mesh", Image: "mesh", VolumeMounts: []corev1.VolumeMount{{Name: "mesh", MountPath: "/mesh"}}})
	}},
	"a sidecar that reads the workspace": {
		alter: func(p *corev1.Pod) {
			p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "scan", Image: "scan", VolumeMounts: []corev1.VolumeMount{{Name: "workspace", MountPath: "/scan"}}})
		},
		want: "a container scan was added that mounts the volume workspace",
	},
	"what a webhook gives the runner": {alter: func(p *corev1.Pod) {
		r := &p.Spec.Containers[0]
		r.Env = append(r.Env, corev1.EnvVar{Name: "OTEL_ENDPOINT", Value: "x"})
	}},
	"a variable of an MCP server": {
		alter: func(p *corev1.Pod) {
			for i := range p.Spec.InitContainers {
				if c := &p.Spec.InitContainers[i]; c.Name == "mcp-issues" {
					c.Env = append(c.Env, corev1.EnvVar{Name: "LD_PRELOAD", Value: "x"})
				}
			}
		},
		want: "container mcp-issues has the variable LD_PRELOAD",
	},
}

func sandboxOf(p *corev1.Pod) *corev1.Container {
	return &p.Spec.InitContainers[slices.IndexFunc(p.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == SandboxContainer })]
}

func TestChanges(t *testing.T) {
	for name, tc := range alterations {
		t.Run(name, func(t *testing.T) {
			asked := equipped(t, plainly)
			made := asked.DeepCopy()
			tc.alter(made)
			got := Changes(asked, made, tc.allowed, Assignable{})
			if got != tc.want && (tc.want == "" || !strings.Contains(got, tc.want)) {
				t.Errorf("Changes() = %q, want %q", got, tc.want)
			}
		})
	}
}

// Where no command of a model runs, webhooks may do what they like.
func TestRunnersMayBeAltered(t *testing.T) {
	asked := firstPod(t)
	made := asked.DeepCopy()
	made.Spec.HostNetwork = true
	made.Spec.Containers[0].Env = nil
	if got := Changes(asked, made, nil, Assignable{}); got != "" {
		t.Errorf("Changes() = %q", got)
	}
}

// What Kueue does to a pod that it holds back is none of the sandbox.
func TestKueueAltersNothing(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Labels = map[string]string{"kueue.x-k8s.io/queue-name": "cheap", "kueue.x-k8s.io/priority-class": "low"}
	})
	pod := New(newInput(t, run, gen.Agent(gen.Coder), gen.Toolsets()))
	if pod.Labels["kueue.x-k8s.io/queue-name"] != "cheap" || pod.Labels["kueue.x-k8s.io/priority-class"] != "low" {
		t.Errorf("its pod has the labels %v", pod.Labels)
	}
	made := pod.DeepCopy()
	made.Labels["kueue.x-k8s.io/managed"], made.Finalizers = "true", []string{"kueue.x-k8s.io/managed"}
	made.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "kueue.x-k8s.io/admission"}, {Name: "kueue.x-k8s.io/topology"}}
	made.Spec.NodeSelector = map[string]string{"pool": "spot"}
	if what := Changes(pod, made, nil, Assignable{}); what != "" {
		t.Errorf("it is said to be altered: %s", what)
	}
}

func mounting(volume, path string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		s := sandboxOf(p)
		s.VolumeMounts = append(s.VolumeMounts, corev1.VolumeMount{Name: volume, MountPath: path})
	}
}

func hasSELinux(o corev1.SELinuxOptions) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SecurityContext.SELinuxOptions = &o }
}

func hasAppArmor(profile corev1.AppArmorProfileType) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.SecurityContext.AppArmorProfile = &corev1.AppArmorProfile{Type: profile} }
}
