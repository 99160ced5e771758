package run

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The containers of a runner pod, beside one for each MCP server.
const (
	runnerContainer  = "runner"
	sandboxContainer = "sandbox"
	installContainer = "install"
	fetchContainer   = "fetch"
	serverPrefix     = "mcp-"
)

// sandboxInImage is the program of sandboxes in the runner's image.
const sandboxInImage = "/sandbox"

// A recipe is what a pod is made of: what the Agent says and, where it says
// nothing, the installation.
type recipe struct {
	world
	template stored.PodTemplate
	supply   Supply
	// sandbox is where commands run; nil: nowhere.
	sandbox *task.Sandbox
	// servers are those that have a container of their own.
	servers []server
}

func recipeOf(w world) recipe {
	r := recipe{world: w, sandbox: w.version.Snapshot.Sandbox, servers: serversOf(w.version.Agent)}
	if t := w.version.Agent.PodTemplate; t != nil {
		r.template = *t
	}
	r.supply = w.supply.over(r.template)
	return r
}

// alone says whether the runner is all there is.
func (r recipe) alone() bool { return r.sandbox == nil && len(r.servers) == 0 }

// fetches says whether the workspace begins with anything.
func (r recipe) fetches() bool {
	ws := r.version.Snapshot.Workspace
	return ws.Git != nil || len(ws.Files) > 0
}

// before are the containers that start before the runner: those that end, then
// those that stay.
func (r recipe) before() []corev1.Container {
	var out []corev1.Container
	if !r.alone() {
		out = append(out, r.install())
	}
	if r.fetches() {
		out = append(out, r.fetch())
	}
	if r.sandbox != nil {
		out = append(out, r.sandboxed())
	}
	for _, s := range r.servers {
		out = append(out, r.serving(s))
	}
	return out
}

// names are those of all containers, with commas.
func (r recipe) names() string {
	names := []string{runnerContainer}
	for _, c := range r.before() {
		names = append(names, c.Name)
	}
	return strings.Join(names, ",")
}

// container is what every container of the pod has.
func (r recipe) container(name, image string) corev1.Container {
	return corev1.Container{
		Name:                     name,
		Image:                    mirrored(image, r.supply.ImageMirror),
		SecurityContext:          containerSecurity(),
		TerminationMessagePath:   task.TerminationLog,
		TerminationMessagePolicy: corev1.TerminationMessageReadFile,
	}
}

// own is a container of an image of ours.
func (r recipe) own(name string) corev1.Container {
	c := r.container(name, r.runner.name)
	c.ImagePullPolicy = r.runner.pull
	c.Resources = resources(r.template.Resources, runnerResources)
	return c
}

// containerSecurity is the restricted Pod Security standard, and a read-only
// root: for every container of a runner pod.
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

// What containers are given that nobody says more of.
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

func resources(said *corev1.ResourceRequirements, standard corev1.ResourceRequirements) corev1.ResourceRequirements {
	if said != nil {
		return *said.DeepCopy()
	}
	return *standard.DeepCopy()
}

func fromField(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}}}
}

// execute is the container that does the work.
func (r recipe) execute() corev1.Container {
	c := r.own(runnerContainer)
	if r.template.RunnerImage != "" {
		c.Image = mirrored(r.template.RunnerImage, r.supply.ImageMirror)
	}
	c.Env = append([]corev1.EnvVar{fromField(task.EnvPodUID, "metadata.uid")}, r.supply.proxyEnv()...)
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "task", MountPath: task.Dir, ReadOnly: true},
		{Name: "token", MountPath: task.TokenDir, ReadOnly: true},
	}
	c.VolumeMounts = append(c.VolumeMounts, r.known()...)
	c.VolumeMounts = append(c.VolumeMounts, r.place("workspace", task.Workspace))
	c.VolumeMounts = append(c.VolumeMounts, r.programs()...)
	for _, name := range r.runnerSecrets() {
		c.VolumeMounts = append(c.VolumeMounts, secretMount(name))
	}
	c.VolumeMounts = append(c.VolumeMounts, r.caMounts()...)
	c.LivenessProbe = liveness()
	return c
}

// liveness has the kubelet end a runner that hangs, about two minutes after it
// stopped to respond. The program of the first process is that of the runner,
// wherever its image keeps it.
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

// install copies the program of sandboxes to where each of them finds it. It is
// the installation's own, whatever the runner is.
func (r recipe) install() corev1.Container {
	c := r.own(installContainer)
	c.Command = []string{sandboxInImage, "install"}
	c.VolumeMounts = r.programs()
	for _, m := range c.VolumeMounts {
		c.Command = append(c.Command, m.MountPath)
	}
	return c
}

// fetch fills the workspace. It has the repository's credentials, and nothing
// else that is secret.
func (r recipe) fetch() corev1.Container {
	c := r.own(fetchContainer)
	c.Args = []string{task.FetchMode}
	c.Env = r.supply.proxyEnv()
	c.VolumeMounts = []corev1.VolumeMount{
		{Name: "task", MountPath: task.Dir, ReadOnly: true},
	}
	c.VolumeMounts = append(c.VolumeMounts, r.known()...)
	c.VolumeMounts = append(c.VolumeMounts, r.place("workspace", task.Workspace))
	if git := r.version.Snapshot.Workspace.Git; git != nil && git.Secret != "" {
		c.VolumeMounts = append(c.VolumeMounts, secretMount(git.Secret))
	}
	for i := range r.version.Agent.Workspace.ConfigMaps {
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: filesVolume(i), MountPath: filesDir(i), ReadOnly: true})
	}
	c.VolumeMounts = append(c.VolumeMounts, r.caMounts()...)
	return c
}

// sandboxed is where commands run. It has the files and nothing else: whatever is
// added here, a model's commands have.
func (r recipe) sandboxed() corev1.Container {
	c := r.container(sandboxContainer, r.sandbox.Image)
	c.RestartPolicy = sidecar()
	c.Command = []string{task.SandboxDir + "/" + task.SandboxProgram, "serve"}
	if r.sandbox.Required {
		c.Command = append(c.Command, "-required")
	}
	// The file of its last word is on the disk of the node, counts against no limit
	// and may be written by anybody: it lies where commands may write nothing.
	c.TerminationMessagePath = terminationLogPath
	var chosen stored.Sandbox
	if s := r.version.Agent.Sandbox; s != nil {
		chosen = *s
	}
	c.Resources = resources(chosen.Resources, sandboxResources)
	for _, v := range chosen.Env {
		c.Env = append(c.Env, variable(v))
	}
	c.Env = append(c.Env, fromField(task.EnvHostIP, "status.hostIP"))
	c.VolumeMounts = []corev1.VolumeMount{
		r.place("workspace", task.Workspace),
		r.place("home", task.Home),
		r.place("tmp", task.Scratch),
		{Name: "sandbox", MountPath: task.SandboxDir},
	}
	return c
}

// terminationLogPath is beneath what commands cannot change.
const terminationLogPath = "/deckhand/termination-log"

// sidecar makes an init container stay, and start again should it end.
func sidecar() *corev1.ContainerRestartPolicy {
	always := corev1.ContainerRestartPolicyAlways
	return &always
}

// programs are the directories that the runner shares with the sandbox and with
// each server, each where all of them see it.
func (r recipe) programs() []corev1.VolumeMount {
	var out []corev1.VolumeMount
	if r.sandbox != nil {
		out = append(out, corev1.VolumeMount{Name: "sandbox", MountPath: task.SandboxDir})
	}
	for _, s := range r.servers {
		out = append(out, corev1.VolumeMount{Name: s.container(), MountPath: s.dir()})
	}
	return out
}

// labels are the pod's: the Run's, the Agent's over them, ours over both.
func (r recipe) labels() map[string]string {
	labels := map[string]string{}
	for _, said := range []map[string]string{r.run.Labels, r.template.Labels} {
		for k, v := range said {
			if !isForeign(k) {
				labels[k] = v
			}
		}
	}
	maps.Copy(labels, r.ownLabels())
	return labels
}

// secretMount is where a container finds a Secret.
func secretMount(name string) corev1.VolumeMount {
	return corev1.VolumeMount{Name: secretVolumeName(name), MountPath: task.SecretsDir + "/" + name, ReadOnly: true}
}
