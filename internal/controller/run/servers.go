package run

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A server is an MCP server in a container of its own.
type server struct {
	toolset string
	spec    v1alpha1.StdioServer
}

// serversOf are the servers of a version that have a container of their own, by
// the names of their Toolsets.
func serversOf(v *snapshot.Version) []server {
	var out []server
	for _, t := range v.Snapshot.Toolsets {
		spec := v.Sources.Toolsets[t.Name].Stdio
		if spec == nil || spec.Container == nil {
			continue
		}
		out = append(out, server{toolset: t.Name, spec: *spec})
	}
	slices.SortFunc(out, func(a, b server) int { return strings.Compare(a.toolset, b.toolset) })
	return out
}

// container is the name of the server's container, and of the volume that it
// shares with the runner. Names of containers have no dots.
func (s server) container() string { return serverPrefix + dotless(s.toolset) }

// tmp is the volume of its scratch files.
func (s server) tmp() string { return "tmp-" + dotless(s.toolset) }

// dir is where the runner finds it.
func (s server) dir() string { return task.ServersDir + "/" + s.toolset }

// start is where its program starts: it may only write to its scratch files.
func (s server) start() string {
	if s.spec.Container.Workspace == v1alpha1.WorkspaceAccessReadOnly {
		return task.Workspace
	}
	return task.Scratch
}

func dotless(name string) string {
	if !strings.Contains(name, ".") {
		return name
	}
	return strings.ReplaceAll(name, ".", "-") + "-" + task.Hash([]byte(name))[:8]
}

// serving is the container of a server: with its own Secrets and no others.
func (r recipe) serving(s server) corev1.Container {
	c := r.container(s.container(), s.spec.Container.Image)
	c.RestartPolicy = sidecar()
	c.Command = []string{
		s.dir() + "/" + task.SandboxProgram, "serve", "-open", "-socket=" + s.dir() + "/" + task.SandboxSocket,
		"-workspace=" + s.start(), "-home=" + task.Scratch, "-temp=" + task.Scratch,
	}
	c.Resources = resources(nil, serverResources)
	for _, v := range s.spec.Env {
		c.Env = append(c.Env, serverVariable(v))
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: s.container(), MountPath: s.dir()},
		{Name: s.tmp(), MountPath: task.Scratch},
	}
	if s.spec.Container.Workspace == v1alpha1.WorkspaceAccessReadOnly {
		files := r.place("workspace", task.Workspace)
		files.ReadOnly = true
		c.VolumeMounts = append(c.VolumeMounts, files)
	}
	return c
}

// serverVariable is a variable of a server. A Secret that is missing keeps the
// container from starting, and the kubelet says so.
func serverVariable(v v1alpha1.ServerVariable) corev1.EnvVar {
	out := corev1.EnvVar{Name: v.Name}
	switch {
	case v.ValueSecretRef != nil:
		no := false
		out.ValueFrom = &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: string(v.ValueSecretRef.Name)},
			Key:                  v.ValueSecretRef.Key,
			Optional:             &no,
		}}
	case v.Value != nil:
		out.Value = literal(*v.Value)
	}
	return out
}
