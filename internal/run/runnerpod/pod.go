package runnerpod

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// uid is the user and group of everything in a runner pod: the user that distroless images call nonroot.
const uid int64 = 65532

// graceSeconds is how long a runner has after SIGTERM.
const graceSeconds int64 = 30

// Name returns the name of an attempt's pod. Long names of Runs are cut and made unique by a hash.
func Name(run string, attempt int32) string {
	suffix := "-" + strconv.Itoa(int(attempt))
	if len(run)+len(suffix) <= 63 {
		return run + suffix
	}
	hash := "-" + task.Hash([]byte(run))[:8]
	kept := strings.TrimRight(run[:63-len(hash)-len(suffix)], "-.")
	return kept + hash + suffix
}

// New returns the pod of an attempt.
func New(in Input) *corev1.Pod {
	b := newBuilder(in)
	deadline := int64(in.ActiveDeadline.Seconds())
	grace, no := graceSeconds, false
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       in.Run.Namespace,
			Name:            in.Run.Status.Attempt.Pod,
			Labels:          b.labels(),
			Annotations:     b.annotations(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(in.Run, v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            v1alpha1.RunnerServiceAccount,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			TerminationGracePeriodSeconds: &grace,
			ActiveDeadlineSeconds:         &deadline,
			SecurityContext:               b.podSecurity(),
			ImagePullSecrets:              b.defaults.pullSecrets(b.template),
			NodeSelector:                  b.template.NodeSelector,
			Tolerations:                   append(nodeLossTolerations(), b.template.Tolerations...),
			RuntimeClassName:              b.template.RuntimeClassName,
			PriorityClassName:             b.template.PriorityClassName,
			Affinity:                      b.affinity(),
			TopologySpreadConstraints:     b.template.TopologySpread,
			HostUsers:                     b.template.HostUsers,
			InitContainers:                b.initContainers(),
			Containers:                    []corev1.Container{b.runner()},
			Volumes:                       b.volumes(),
		},
	}
}

// foreign are the prefixes of labels that belong to the tool that manages the Run's
// manifest: on a pod they would make GitOps tools adopt or prune it.
var foreign = []string{"app.kubernetes.io/", "argocd.argoproj.io/", "helm.sh/", "deckhand.dev/"}

// ownLabels returns the labels that Deckhand reads.
func (b builder) ownLabels() map[string]string {
	labels := map[string]string{
		"app.kubernetes.io/name":       "deckhand-runner",
		"app.kubernetes.io/managed-by": "deckhand",
		v1alpha1.LabelRun:              b.Run.Name,
		v1alpha1.LabelAttempt:          strconv.Itoa(int(b.Attempt)),
		v1alpha1.LabelAgent:            snapshot.Label(b.Revision.Agent.Name),
	}
	for _, part := range []string{v1alpha1.LabelWorkflowRun, v1alpha1.LabelWorkflowNode, v1alpha1.LabelParentRun} {
		if of := b.Run.Labels[part]; of != "" {
			labels[part] = of // so that the logs of the whole are found
		}
	}
	if b.sharesVolume() {
		labels[v1alpha1.LabelVolumeClaim] = b.Run.Status.Attempt.VolumeClaim
	}
	if b.Source != nil {
		labels[v1alpha1.LabelSourceVolumeClaim] = b.Source.Name
	}
	if b.NetworkPolicies {
		labels[v1alpha1.LabelEgress] = EgressClass(b.Input).Label()
	}
	return labels
}

// IsForeignLabel reports whether a label belongs to the tool that manages the Run.
func IsForeignLabel(key string) bool {
	for _, prefix := range foreign {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, ".toolkit.fluxcd.io") || runstatus.IsRestoreMark(key)
}

// annotations returns hints for tools that inject into the pod or evict it, which the Agent may override, and the
// annotations that the operator and the runner read.
func (b builder) annotations() map[string]string {
	out := map[string]string{"sidecar.istio.io/inject": "false"}
	if len(b.initContainers()) > 0 {
		out["kubectl.kubernetes.io/default-container"] = RunnerContainer
	}
	if !b.Durable { // with the pod goes the work
		out["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false"
		out["karpenter.sh/do-not-disrupt"] = "true"
	}
	maps.Copy(out, b.template.Annotations)
	maps.Copy(out, b.ownAnnotations())
	return out
}

// ownAnnotations returns the annotations that Deckhand reads, or that keep credentials out of containers.
func (b builder) ownAnnotations() map[string]string {
	names := b.containerNames()
	out := map[string]string{
		v1alpha1.AnnotationTask:                   string(ToJSON(TaskOf(b.Input))),
		"eks.amazonaws.com/skip-containers":       names,
		"azure.workload.identity/skip-containers": names,
	}
	if r := b.Revision.Agent.PodRetention; r != nil && r.Duration != DefaultRetention {
		out[v1alpha1.AnnotationRetention] = r.Duration.String()
	}
	if b.NetworkPolicies {
		class := EgressClass(b.Input)
		out[v1alpha1.AnnotationEgress] = class.Label()
		if text := class.Text(); text != "" {
			out[v1alpha1.AnnotationEgressClass] = text
		}
	}
	if b.Signals != nil {
		out[v1alpha1.AnnotationSignals] = string(ToJSON(b.Signals))
	}
	return out
}

// DefaultRetention is how long a pod is kept after its Run has finished, by default.
const DefaultRetention = time.Hour

// podSecurity returns the security context of the pod. The kubelet checks the owner of a volume only at its root,
// because it may have many files.
func (b builder) podSecurity() *corev1.PodSecurityContext {
	s := podSecurity(b.userAndGroups())
	if b.Run.Status.Attempt.VolumeClaim == "" {
		s.FSGroupChangePolicy = nil
	}
	return s
}

// userAndGroups returns the users of the pod. If the cluster chooses, they are unset, unless the Agent names a user or
// the volume has files already. Files keep their user even if another value of podUser is installed.
func (b builder) userAndGroups() userAndGroups {
	id, owner := b.template.RunAsUser, FileOwnerOf(b.VolumeClaim)
	switch {
	case b.defaults.User == PodUserCluster && owner == nil:
		return userAndGroups{user: id}
	case b.defaults.User == PodUserCluster:
		out := owner.asked()
		out.user = cmp.Or(id, out.user)
		return out
	case id != nil:
		return oneUser(*id)
	case owner != nil:
		out := owner.asked()
		out.group = cmp.Or(out.fsGroup, out.user)
		return out
	}
	return oneUser(uid)
}

// workingDir returns where programs of the pod start. If the user is not the default one, it may not be able to enter
// the home of the image's user.
func (b builder) workingDir() string {
	if owner := FileOwnerOf(b.VolumeClaim); b.template.RunAsUser == nil && owner != nil && owner.User != uid {
		return PodUserCluster.workingDir()
	}
	return b.defaults.User.workingDir()
}

// userAndGroups are the IDs of a pod; nil: the cluster chooses.
type userAndGroups struct{ user, group, fsGroup *int64 }

// oneUser returns a user whose group has the same ID and owns the files.
func oneUser(id int64) userAndGroups { return userAndGroups{user: &id, group: &id, fsGroup: &id} }

func podSecurity(ids userAndGroups) *corev1.PodSecurityContext {
	yes, policy := true, corev1.FSGroupChangeOnRootMismatch
	return &corev1.PodSecurityContext{
		RunAsNonRoot:        &yes,
		RunAsUser:           ids.user,
		RunAsGroup:          ids.group,
		FSGroup:             ids.fsGroup,
		FSGroupChangePolicy: &policy,
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// nodeLossTolerations makes the cluster give a pod up on a dead node in one minute; its
// default is five.
func nodeLossTolerations() []corev1.Toleration {
	after := int64(60)
	var out []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &after})
	}
	return out
}

// Input is all that a runner pod is built from.
type Input struct {
	Run      *v1alpha1.Run
	Revision *snapshot.Revision // of the Agent
	Attempt  int32
	// Limits bound all attempts of the Run together.
	Limits task.Limits
	// Durable: files and journal are on a volume.
	Durable bool
	// VolumeClaim is the volume that the pod mounts, if it exists already.
	VolumeClaim *corev1.PersistentVolumeClaim
	// Source is the volume of the Run that this one continues, if the pod copies from it; nil: it does not.
	Source *corev1.PersistentVolumeClaim
	// ActiveDeadline is how long the pod may run.
	ActiveDeadline time.Duration
	// Signals are delivered with the pod, or nil.
	Signals *task.Signals
	// Image is the image of runners, unless the Agent has its own.
	Image    Image
	Defaults Defaults
	// NetworkPolicies: the pod has the label by which a NetworkPolicy selects it.
	NetworkPolicies bool
}

// builder has the settings of the Agent for its pods and, where they are missing, those of the installation.
type builder struct {
	Input
	template stored.PodTemplate
	defaults Defaults
	// sandbox is where commands run; nil: nowhere.
	sandbox *task.Sandbox
	// servers are the MCP servers with their own containers.
	servers []server
	// skills are those of all agents of the pod.
	skills []task.Skill
}

func newBuilder(in Input) builder {
	b := builder{Input: in, sandbox: in.Revision.Snapshot.Sandbox, servers: serverContainersOf(in.Revision.Agent), skills: in.Revision.Snapshot.Skills()}
	if t := in.Revision.Agent.PodTemplate; t != nil {
		b.template = *t
	}
	b.defaults = in.Defaults.withTemplate(b.template)
	return b
}

// EgressClass returns the class of the destinations of a pod.
func EgressClass(in Input) egress.Class {
	var urls []string
	if p := newBuilder(in).defaults.Proxy; p != nil {
		urls = append(urls, p.HTTP, p.HTTPS)
	}
	if t := in.Defaults.Traces; t != nil {
		urls = append(urls, t.Endpoint)
	}
	return egress.Of(in.Revision.Snapshot, in.Run.Namespace, urls...)
}

// Defaults are the settings of an installation for images and network access of pods. The podTemplate of an Agent
// overrides them.
type Defaults struct {
	// User selects who chooses the user and the groups of pods; empty: Deckhand.
	User PodUser
	// Resources override the standard resources of every container.
	Resources corev1.ResourceRequirements
	// ImageMirror replaces the registry of every image, or is empty.
	ImageMirror string
	// ImagePullSecrets are for all images.
	ImagePullSecrets []string
	// CABundle is trusted in addition to the usual certificates; nil: none.
	CABundle *v1alpha1.ConfigMapKeyRef
	// Proxy is the HTTP proxy; nil: none.
	Proxy *v1alpha1.Proxy
	// Traces is where runners send spans; nil: nowhere.
	Traces *task.Traces
	// NetworkCheck is the host and port at which the operator helps runners to find out whether
	// NetworkPolicies are enforced; empty: nowhere.
	NetworkCheck string
}

// withTemplate returns the defaults overridden by a template.
func (d Defaults) withTemplate(t stored.PodTemplate) Defaults {
	d.ImageMirror = cmp.Or(t.ImageMirror, d.ImageMirror)
	if c := t.CABundle; c != nil {
		d.CABundle = &v1alpha1.ConfigMapKeyRef{Name: v1alpha1.ObjectName(c.Name), Key: c.Key}
	}
	if p := t.Proxy; p != nil {
		d.Proxy = &v1alpha1.Proxy{HTTP: p.HTTP, HTTPS: p.HTTPS, NoProxy: p.NoProxy}
	}
	return d
}

// standard returns the default resources of a container. A request must be at most its limit: a limit of the
// installation lowers a request, and a request of the installation raises a limit.
func (d Defaults) standard(own corev1.ResourceRequirements) corev1.ResourceRequirements {
	out := *own.DeepCopy()
	maps.Copy(out.Requests, d.Resources.Requests)
	maps.Copy(out.Limits, d.Resources.Limits)
	for name, limit := range out.Limits {
		request, requested := out.Requests[name]
		if !requested || request.Cmp(limit) <= 0 {
			continue
		}
		if _, chosen := d.Resources.Limits[name]; chosen {
			out.Requests[name] = limit
		} else {
			out.Limits[name] = request
		}
	}
	return out
}

// pullSecrets returns the Secrets of the template, followed by those of the installation.
func (d Defaults) pullSecrets(t stored.PodTemplate) []corev1.LocalObjectReference {
	out := slices.Clone(t.ImagePullSecrets)
	for _, name := range d.ImagePullSecrets {
		ref := corev1.LocalObjectReference{Name: name}
		if !slices.Contains(out, ref) {
			out = append(out, ref)
		}
	}
	return out
}

// PullSecrets returns the names of the Secrets with which the images of a pod are pulled.
func PullSecrets(in Input) []string {
	b := newBuilder(in)
	var out []string
	for _, ref := range b.defaults.pullSecrets(b.template) {
		out = append(out, ref.Name)
	}
	return out
}

// mirroredImage returns an image in a mirror: under its name without the registry. An image that is already in the
// mirror is unchanged.
func mirroredImage(image, mirror string) string {
	mirror = strings.TrimRight(mirror, "/")
	if mirror == "" || strings.HasPrefix(image, mirror+"/") {
		return image
	}
	registry, rest, found := strings.Cut(image, "/")
	switch {
	case !found:
		return mirror + "/library/" + image
	case !isRegistry(registry):
		return mirror + "/" + image
	case registry == "docker.io" || registry == "index.docker.io":
		if !strings.Contains(rest, "/") {
			rest = "library/" + rest
		}
	}
	return mirror + "/" + rest
}

// isRegistry distinguishes a registry from a folder, as all container engines do.
func isRegistry(part string) bool {
	return strings.ContainsAny(part, ".:") || part == "localhost"
}

// inCluster are hosts that no proxy is asked for. The kubelet puts the API
// server's address in.
const inCluster = "localhost,127.0.0.1,.svc,.cluster.local,$(KUBERNETES_SERVICE_HOST)"

// proxyEnv returns the variables that Go and most other programs read.
func (d Defaults) proxyEnv() []corev1.EnvVar {
	if d.Proxy == nil {
		return nil
	}
	plain, secure := d.Proxy.HTTP, cmp.Or(d.Proxy.HTTPS, d.Proxy.HTTP)
	none := inCluster
	if own := d.Proxy.NoProxy; own != "" {
		none += "," + literal(own)
	}
	var out []corev1.EnvVar
	for _, e := range []corev1.EnvVar{{Name: "HTTP_PROXY", Value: literal(plain)}, {Name: "HTTPS_PROXY", Value: literal(secure)}} {
		if e.Value != "" {
			out = append(out, e)
		}
	}
	return append(out, corev1.EnvVar{Name: "NO_PROXY", Value: none})
}

// literal keeps a kubelet from reading $(NAME) in a value.
func literal(value string) string { return strings.ReplaceAll(value, "$", "$$") }
