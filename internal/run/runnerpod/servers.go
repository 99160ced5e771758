package runnerpod

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A server is an MCP server in a container of its own.
type server struct {
	toolset string
	stored.Server
}

// serverContainersOf are the servers of an Agent that have a container of their own, by the
// names of their Toolsets.
func serverContainersOf(a stored.Agent) []server {
	var out []server
	for toolset, s := range a.Servers {
		out = append(out, server{toolset, s})
	}
	slices.SortFunc(out, func(a, b server) int { return strings.Compare(a.toolset, b.toolset) })
	return out
}

// container is the name of the server's container, and of the volume that it
// shares with the runner. Names of containers have no dots.
func (s server) container() string { return ServerPrefix + dotless(s.toolset) }

// tmp is the volume of its scratch files.
func (s server) tmp() string { return "tmp-" + dotless(s.toolset) }

// dir is where the runner finds it.
func (s server) dir() string { return task.ServersDir + "/" + s.toolset }

// workingDir is where its program starts: it may only write to its scratch files.
func (s server) workingDir() string {
	if s.MountsWorkspace {
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

// serverContainer is the container of a server: with its own Secrets and no others.
func (b builder) serverContainer(s server) corev1.Container {
	c := b.container(s.container(), s.Image)
	c.RestartPolicy = sidecar()
	c.Command = []string{
		s.dir() + "/" + task.SandboxProgram, "serve", "-open", "-socket=" + s.dir() + "/" + task.SandboxSocket,
		"-workspace=" + s.workingDir(), "-home=" + task.Scratch, "-temp=" + task.Scratch,
	}
	c.Resources = b.defaults.standard(serverResources)
	for _, v := range s.Env {
		c.Env = append(c.Env, variable(v))
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: s.container(), MountPath: s.dir()},
		{Name: s.tmp(), MountPath: task.Scratch},
	}
	if s.MountsWorkspace {
		files := b.fileMount("workspace", task.Workspace)
		files.ReadOnly = true
		c.VolumeMounts = append(c.VolumeMounts, files)
	}
	return c
}

// variable is a variable of a container. A Secret that is missing keeps the container
// from starting, and the kubelet says so.
func variable(v stored.Variable) corev1.EnvVar {
	if v.Secret == nil {
		return corev1.EnvVar{Name: v.Name, Value: literal(v.Value)}
	}
	no := false
	return corev1.EnvVar{Name: v.Name, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
		LocalObjectReference: corev1.LocalObjectReference{Name: v.Secret.Name},
		Key:                  v.Secret.Key,
		Optional:             &no,
	}}}
}
