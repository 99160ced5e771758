package runnerpod

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The containers of a runner pod, in addition to one for each MCP server.
const (
	RunnerContainer  = "runner"
	SandboxContainer = "sandbox"
	InstallContainer = "install"
	FetchContainer   = "fetch"
	ServerPrefix     = "mcp-"
)

// sandboxInImage is the program of sandboxes in the runner's image.
const sandboxInImage = "/sandbox"

// isRunnerOnly reports whether the pod has no sandbox and no MCP servers.
func (b builder) isRunnerOnly() bool { return b.sandbox == nil && len(b.servers) == 0 }

// needsFetch reports whether the pod has initial files.
func (b builder) needsFetch() bool {
	ws := b.Revision.Snapshot.Workspace
	return ws.Git != nil || len(ws.Files) > 0 || b.Source != nil || len(b.skills) > 0 || SharesSource(b.Run)
}

// initContainers returns the containers that start before the runner: first the containers that end, then the ones that
// keep running.
func (b builder) initContainers() []corev1.Container {
	var out []corev1.Container
	if !b.isRunnerOnly() {
		out = append(out, b.install())
	}
	if b.needsFetch() {
		out = append(out, b.fetch())
	}
	if b.sandbox != nil {
		out = append(out, b.sandboxContainer())
	}
	for _, s := range b.servers {
		out = append(out, b.serverContainer(s))
	}
	return out
}

// containerNames returns the names of all containers, separated by commas.
func (b builder) containerNames() string {
	names := []string{RunnerContainer}
	for _, c := range b.initContainers() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ",")
}

// container returns the common part of all containers of the pod.
func (b builder) container(name, image string) corev1.Container {
	return corev1.Container{
		Name:                     name,
		Image:                    mirroredImage(image, b.defaults.ImageMirror),
		WorkingDir:               b.workingDir(),
		SecurityContext:          containerSecurity(),
		TerminationMessagePath:   task.TerminationLog,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

// deckhandContainer returns a container with an image of Deckhand.
func (b builder) deckhandContainer(name string) corev1.Container {
	c := b.container(name, b.Image.Name)
	c.ImagePullPolicy = b.Image.PullPolicy
	c.Resources = resources(b.template.Resources, b.defaults.standard(runnerResources))
	return c
}

// containerSecurity returns the security settings of every container of a runner pod: the restricted Pod Security
// standard, and a read-only root.
func containerSecurity() *corev1.SecurityContext {
	yes, no := true, false
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &yes,
		RunAsNonRoot:             &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile:           &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// Default resources of containers.
var (
	runnerResources  = sized("32Mi", "256Mi")
	sandboxResources = sized("64Mi", "1Gi")
	serverResources  = sized("64Mi", "512Mi")
)

func sized(wanted, most string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse(wanted),
		},
		Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(most)},
	}
}

// resources returns the configured resources, completed by those of standard. Configured resources without CPU get its
// CPU request: the kernel shares CPU time between containers by their requests, and a container without one may get
// none beside a sandbox whose commands take all. A missing limit is set to the limit of standard, or to their request
// if that is larger: a container without a memory limit could take all memory of the cluster node.
func resources(configured *corev1.ResourceRequirements, standard corev1.ResourceRequirements) corev1.ResourceRequirements {
	if configured == nil {
		return standard
	}
	out := *configured.DeepCopy()
	if out.Requests == nil {
		out.Requests = corev1.ResourceList{}
	}
	if out.Limits == nil {
		out.Limits = corev1.ResourceList{}
	}
	for name, request := range standard.Requests {
		_, requested := out.Requests[name]
		if !requested && !hasLimit(out, name) { // Kubernetes makes a limit the request too
			out.Requests[name] = request
		}
	}
	for name, limit := range standard.Limits {
		if hasLimit(out, name) {
			continue
		}
		if request := out.Requests[name]; request.Cmp(limit) > 0 {
			limit = request
		}
		out.Limits[name] = limit
	}
	return out
}

// hasLimit reports whether a resource has a limit. 0 means none.
func hasLimit(r corev1.ResourceRequirements, name corev1.ResourceName) bool {
	limit := r.Limits[name]
	return !limit.IsZero()
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// runner returns the container of the runner.
func (b builder) runner() corev1.Container {
	c := b.deckhandContainer(RunnerContainer)
	c.SecurityContext.RunAsNonRoot, c.SecurityContext.SeccompProfile = nil, nil // the pod has them
	if b.template.RunnerImage != "" {
		c.Image = mirroredImage(b.template.RunnerImage, b.defaults.ImageMirror)
	}
	c.Env = append([]corev1.EnvVar{fromField(task.EnvPodUID, "metadata.uid")}, b.defaults.proxyEnv()...)
	if b.sandbox != nil && b.NetworkPolicies && b.defaults.NetworkCheck != "" {
		c.Env = append(c.Env, corev1.EnvVar{Name: task.EnvNetworkCheck, Value: b.defaults.NetworkCheck})
	}
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: volumeOfTask, MountPath: task.Dir},
		{Name: "token", MountPath: task.TokenDir},
	}
	c.VolumeMounts = append(c.VolumeMounts, b.stateMounts()...)
	c.VolumeMounts = append(c.VolumeMounts, b.fileMount("workspace", task.Workspace))
	c.VolumeMounts = append(c.VolumeMounts, b.skillMounts()...)
	c.VolumeMounts = append(c.VolumeMounts, b.programMounts()...)
	for _, name := range b.runnerSecrets() {
		c.VolumeMounts = append(c.VolumeMounts, secretMount(name))
	}
	c.VolumeMounts = append(c.VolumeMounts, b.caMounts()...)
	c.LivenessProbe = liveness()
	return c
}

// liveness makes the kubelet end a runner that hangs, about two minutes after its last response. The probe runs the
// program of the first process, whose path depends on the image.
func liveness() *corev1.Probe {
	grace := int64(5)
	return &corev1.Probe{
		ProbeHandler:                  corev1.ProbeHandler{Exec: &corev1.ExecAction{Command: []string{"/proc/1/exe", task.LivenessMode}}},
		InitialDelaySeconds:           30,
		PeriodSeconds:                 30,
		TimeoutSeconds:                10,
		FailureThreshold:              4,
		TerminationGracePeriodSeconds: &grace,
	}
}

// install copies the program of sandboxes to the directory of each. The copy comes from the installation's image, and
// not from a custom runner image.
func (b builder) install() corev1.Container {
	c := b.deckhandContainer(InstallContainer)
	c.Command = []string{sandboxInImage, "install"}
	c.VolumeMounts = b.programMounts()
	for _, m := range c.VolumeMounts {
		c.Command = append(c.Command, m.MountPath)
	}
	return c
}

// fetch returns the container that fills the workspace. Its only secrets are the credentials of repositories.
func (b builder) fetch() corev1.Container {
	c := b.deckhandContainer(FetchContainer)
	c.Args = []string{task.FetchMode}
	c.Env = append(b.workspaceSize(), b.defaults.proxyEnv()...)
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: volumeOfTask, MountPath: task.Dir},
	}
	c.VolumeMounts = append(c.VolumeMounts, b.stateMounts()...)
	c.VolumeMounts = append(c.VolumeMounts, b.fileMount("workspace", task.Workspace))
	c.VolumeMounts = append(c.VolumeMounts, b.sourceMounts()...)
	for _, secret := range snapshot.GitSecrets(b.Revision.Snapshot) {
		c.VolumeMounts = append(c.VolumeMounts, secretMount(secret))
	}
	for i := range b.Revision.Agent.Workspace.ConfigMaps {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: filesVolume(i), MountPath: filesDir(i)})
	}
	if len(b.skills) > 0 {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: volumeOfSkills, MountPath: task.SkillsDir})
	}
	for i, skill := range b.skills {
		if skill.ConfigMap != "" {
			c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: skillVolume(i), MountPath: task.SkillFilesDir + "/" + skill.Name})
		}
	}
	c.VolumeMounts = append(c.VolumeMounts, b.caMounts()...)
	return c
}

// workspaceSize returns the variable with the size of the workspace, which bounds the repository and the files of
// another Run: neither the kubelet nor every file system counts directories.
func (b builder) workspaceSize() []corev1.EnvVar {
	isBounded := b.Revision.Agent.Workspace.Size != nil || b.Run.Status.Attempt.VolumeClaim != ""
	if b.Source == nil && !SharesSource(b.Run) && (b.Revision.Snapshot.Workspace.Git == nil || !isBounded) {
		return nil
	}
	size := b.size()
	return []corev1.EnvVar{{Name: task.EnvWorkspaceSize, Value: strconv.FormatInt(size.Value(), 10)}}
}

// sandboxContainer returns the container of commands. It has only the files: everything that is added here is
// accessible to a model's commands.
func (b builder) sandboxContainer() corev1.Container {
	c := b.container(SandboxContainer, b.sandbox.Image)
	c.RestartPolicy = sidecar()
	c.Command = []string{task.SandboxDir + "/" + task.SandboxProgram, "serve"}
	if b.sandbox.Required {
		c.Command = append(c.Command, "-required")
	}
	// The file of the termination message is on the node's disk, counts against no limit and can be written by any
	// user, so it is in a directory where commands cannot write.
	c.TerminationMessagePath = terminationLogPath
	var chosen stored.Sandbox
	if s := b.Revision.Agent.Sandbox; s != nil {
		chosen = *s
	}
	c.Resources = resources(chosen.Resources, b.defaults.standard(sandboxResources))
	for _, v := range chosen.Env {
		c.Env = append(c.Env, variable(v))
	}
	c.VolumeMounts = []corev1.VolumeMount{
		b.fileMount("workspace", task.Workspace),
		b.fileMount("home", task.Home),
		b.fileMount("tmp", task.Scratch),
		{Name: "sandbox", MountPath: task.SandboxDir},
	}
	c.VolumeMounts = append(c.VolumeMounts, b.skillMounts()...)
	return c
}

// terminationLogPath is in a directory that commands cannot change.
const terminationLogPath = "/deckhand/termination-log"

// sidecar makes an init container stay, and start again should it end.
func sidecar() *corev1.ContainerRestartPolicy {
	always := corev1.ContainerRestartPolicyAlways
	return &always
}

// programMounts returns the directories that the runner shares with the sandbox and with
// each server, each where all of them see it.
func (b builder) programMounts() []corev1.VolumeMount {
	var out []corev1.VolumeMount
	if b.sandbox != nil {
		out = append(out, corev1.VolumeMount{Name: "sandbox", MountPath: task.SandboxDir})
	}
	for _, s := range b.servers {
		out = append(out, corev1.VolumeMount{Name: s.container(), MountPath: s.dir()})
	}
	return out
}

// labels returns the labels of the pod: those of the Run, overridden by those of the Agent and by the labels that
// Deckhand reads.
func (b builder) labels() map[string]string {
	labels := map[string]string{}
	for _, said := range []map[string]string{b.Run.Labels, b.template.Labels} {
		for k, v := range said {
			if !IsForeignLabel(k) {
				labels[k] = v
			}
		}
	}
	maps.Copy(labels, b.ownLabels())
	return labels
}

// secretMount returns the mount of a Secret.
func secretMount(name string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: secretVolumeName(name), MountPath: task.SecretsDir + "/" + name}
}

// A server is an MCP server with its own container.
type server struct {
	toolset string
	stored.Server
}

// serverContainersOf returns the servers of an Agent that have a container of their own, by the
// names of their Toolsets.
func serverContainersOf(a stored.Agent) []server {
	var out []server
	for toolset, s := range a.Servers {
		out = append(out, server{toolset, s})
	}
	slices.SortFunc(out, func(a, b server) int { return strings.Compare(a.toolset, b.toolset) })
	return out
}

// container returns the name of the server's container, and of the volume that it
// shares with the runner. Names of containers have no dots.
func (s server) container() string { return ServerPrefix + dotless(s.toolset) }

// tmp returns the name of the volume for its temporary files.
func (s server) tmp() string { return "tmp-" + dotless(s.toolset) }

// dir returns the directory that the server shares with the runner.
func (s server) dir() string { return task.ServersDir + "/" + s.toolset }

// workingDir returns the working directory of the server's program: the workspace if it is mounted, otherwise its
// temporary files.
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

// serverContainer returns the container of a server, with only its own Secrets.
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

// variable returns a variable of a container. If its Secret is missing, the container does not start, and the kubelet
// reports that.
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
