package runnerpod

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// Changes compares a pod that the API server stored with the requested one, and returns the differences. Other webhooks
// may add anything to the runner, which protects itself; but commands of a model and MCP servers could use anything
// that is added to their containers. If the user was left to the cluster, assignable values are accepted.
func Changes(asked, made *corev1.Pod, allowed []string, assignable Assignable) string {
	c := comparison{asked: asked, made: made, allowed: allowed}
	var assigned []string
	if leavesUser(asked) {
		c.made, assigned = assignable.accept(asked, made)
	}
	for i := range asked.Spec.InitContainers {
		if want := &asked.Spec.InitContainers[i]; IsGuarded(want.Name) {
			c.container(want)
		}
	}
	if len(c.guarded) == 0 {
		return "" // the runner is alone: no other commands run here
	}
	c.pod()
	c.found = append(c.found, assigned...)
	c.volumes()
	c.others()
	return strings.Join(c.found, "; ")
}

// IsGuarded reports whether a container runs programs that are not part of Deckhand.
func IsGuarded(name string) bool {
	return name == SandboxContainer || strings.HasPrefix(name, ServerPrefix)
}

// A comparison collects differences.
type comparison struct {
	asked, made *corev1.Pod
	allowed     []string
	guarded     []*corev1.Container // as they were asked for
	found       []string
}

func (c *comparison) add(format string, args ...any) {
	c.found = append(c.found, fmt.Sprintf(format, args...))
}

func (c *comparison) allows(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return slices.Contains(c.allowed, n) })
}

// container compares one container. Defaults of the cluster, and resources, do not count.
func (c *comparison) container(want *corev1.Container) {
	c.guarded = append(c.guarded, want)
	at := slices.IndexFunc(c.made.Spec.InitContainers, func(m corev1.Container) bool { return m.Name == want.Name })
	if at < 0 {
		c.add("container %s was removed", want.Name)
		return
	}
	is := &c.made.Spec.InitContainers[at]
	if !sameImage(want.Image, is.Image) {
		c.add("container %s has the image %s instead of %s", want.Name, is.Image, want.Image)
	}
	for what, same := range map[string]bool{
		"command":           slices.Equal(want.Command, is.Command) && slices.Equal(want.Args, is.Args),
		"working directory": want.WorkingDir == is.WorkingDir,
		"restart policy":    equality.Semantic.DeepEqual(want.RestartPolicy, is.RestartPolicy),
		"security context":  sameSecurity(want.SecurityContext, is.SecurityContext),
		"devices":           len(is.VolumeDevices) == 0,
		"probes and hooks":  is.LivenessProbe == nil && is.ReadinessProbe == nil && is.StartupProbe == nil && is.Lifecycle == nil,
		"resource claims":   len(is.Resources.Claims) == len(want.Resources.Claims),
	} {
		if !same {
			c.add("container %s has another %s", want.Name, what)
		}
	}
	slices.Sort(c.found)
	c.env(want, is)
	c.mounts(want, is)
}

func (c *comparison) env(want, is *corev1.Container) {
	for _, e := range is.Env {
		asked := slices.ContainsFunc(want.Env, func(w corev1.EnvVar) bool { return equality.Semantic.DeepEqual(w, e) })
		if !asked && !c.allows(e.Name) {
			c.add("container %s has the variable %s", want.Name, e.Name)
		}
	}
	for _, f := range is.EnvFrom {
		name := ""
		switch {
		case f.SecretRef != nil:
			name = f.SecretRef.Name
		case f.ConfigMapRef != nil:
			name = f.ConfigMapRef.Name
		}
		c.add("container %s has all variables of %s", want.Name, cmp.Or(name, "another object"))
	}
}

func (c *comparison) mounts(want, is *corev1.Container) {
	for _, m := range is.VolumeMounts {
		asked := slices.ContainsFunc(want.VolumeMounts, func(w corev1.VolumeMount) bool { return sameMount(w, m) })
		if !asked && !c.allows(m.MountPath, m.Name) {
			c.add("container %s has the mount %s of the volume %s", want.Name, m.MountPath, m.Name)
		}
	}
	for _, w := range want.VolumeMounts {
		if !slices.ContainsFunc(is.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == w.MountPath }) {
			c.add("container %s lacks the mount %s", want.Name, w.MountPath)
		}
	}
}

// pod compares the fields that give containers access to each other, or to the node.
func (c *comparison) pod() {
	spec := &c.made.Spec
	shared := spec.ShareProcessNamespace != nil && *spec.ShareProcessNamespace
	var security corev1.PodSecurityContext
	if spec.SecurityContext != nil {
		security = *spec.SecurityContext
	}
	user, group := security.RunAsUser, security.RunAsGroup
	for _, fact := range []struct {
		is   bool
		what string
	}{
		{shared, "its containers share their processes"},
		{spec.HostNetwork, "it has the network of its node"},
		{spec.HostPID, "it sees the processes of its node"},
		{spec.HostIPC, "it shares memory with its node"},
		{!equality.Semantic.DeepEqual(user, c.asked.Spec.SecurityContext.RunAsUser) || !equality.Semantic.DeepEqual(group, c.asked.Spec.SecurityContext.RunAsGroup), "its user or group is another"},
		{!isConfinedBySELinux(security.SELinuxOptions), "its SELinux options leave the confinement of containers"},
		{security.AppArmorProfile != nil && security.AppArmorProfile.Type == corev1.AppArmorProfileTypeUnconfined, "its AppArmor profile is Unconfined"},
	} {
		if fact.is {
			c.add("the pod is another: %s", fact.what)
		}
	}
}

// isConfinedBySELinux reports whether processes have the type of containers. A level, which administrators assign to
// each namespace, does not weaken the confinement; types such as spc_t do.
func isConfinedBySELinux(o *corev1.SELinuxOptions) bool {
	return o == nil || o.User == "" && o.Role == "" && (o.Type == "" || o.Type == "container_t")
}

// volumes compares the mounts of the guarded containers.
func (c *comparison) volumes() {
	for _, want := range c.asked.Spec.Volumes {
		mounted := slices.ContainsFunc(c.guarded, func(g *corev1.Container) bool {
			return slices.ContainsFunc(g.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == want.Name })
		})
		same := slices.ContainsFunc(c.made.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == want.Name && equality.Semantic.DeepEqual(v.VolumeSource, want.VolumeSource)
		})
		if mounted && !same {
			c.add("the volume %s is another", want.Name)
		}
	}
}

// others compares containers that were added: they may exist, but not see files, signals or
// credentials.
func (c *comparison) others() {
	ours := slices.Concat(c.asked.Spec.InitContainers, c.asked.Spec.Containers)
	for _, m := range slices.Concat(c.made.Spec.InitContainers, c.made.Spec.Containers) {
		if slices.ContainsFunc(ours, func(o corev1.Container) bool { return o.Name == m.Name }) {
			continue
		}
		for _, mount := range m.VolumeMounts {
			own := slices.ContainsFunc(c.asked.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
			if own && !c.allows(mount.MountPath) {
				c.add("a container %s was added that mounts the volume %s", m.Name, mount.Name)
			}
		}
	}
}

// sameImage allows an added digest: policies that verify images add one.
func sameImage(want, is string) bool {
	return is == want || !strings.Contains(want, "@") && strings.HasPrefix(is, want+"@sha256:")
}

// sameSecurity compares the security context with the requested one. The cluster may add the default of procMount.
func sameSecurity(want, is *corev1.SecurityContext) bool {
	if is == nil {
		return want == nil
	}
	got := is.DeepCopy()
	if got.ProcMount != nil && *got.ProcMount == corev1.DefaultProcMount {
		got.ProcMount = nil
	}
	return equality.Semantic.DeepEqual(want, got)
}

// sameMount ignores defaults that the cluster adds.
func sameMount(want, is corev1.VolumeMount) bool {
	return want.Name == is.Name && want.MountPath == is.MountPath && want.SubPath == is.SubPath && is.SubPathExpr == "" &&
		(want.ReadOnly == is.ReadOnly || is.ReadOnly) && (is.MountPropagation == nil || *is.MountPropagation == corev1.MountPropagationNone)
}
