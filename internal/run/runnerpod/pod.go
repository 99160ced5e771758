package runnerpod

import (
	"cmp"
	"maps"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// uid is the user and group of everything in a runner pod: the one that
// distroless images call nonroot.
const uid int64 = 65532

// graceSeconds is how long a runner has after SIGTERM.
const graceSeconds int64 = 30

// Name is the name of an attempt's pod; long names of Runs are cut and
// told apart by a hash.
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

// ownLabels are those that Deckhand reads.
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

// annotations are hints to those who would inject into the pod or evict it, which the Agent may
// override, and what the operator and the runner read.
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

// ownAnnotations are those that Deckhand reads, and that keep credentials out of containers.
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

// DefaultRetention is how long a pod stays after its Run has finished, if its Agent does not say.
const DefaultRetention = time.Hour

// podSecurity is that of all containers. Who owns the files of a volume is looked up only at its
// root, because it may have many.
func (b builder) podSecurity() *corev1.PodSecurityContext {
	s := podSecurity(b.userAndGroups())
	if b.Run.Status.Attempt.VolumeClaim == "" {
		s.FSGroupChangePolicy = nil
	}
	return s
}

// userAndGroups are those of the pod. If the cluster chooses, they are unset, unless the Agent
// names a user or the volume has files already. Files keep their user if another value of podUser
// is installed.
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

// workingDir is where programs of the pod start. If the user is another than when Deckhand chooses,
// the home of the image's user may be closed.
func (b builder) workingDir() string {
	if owner := FileOwnerOf(b.VolumeClaim); b.template.RunAsUser == nil && owner != nil && owner.User != uid {
		return PodUserCluster.workingDir()
	}
	return b.defaults.User.workingDir()
}

// userAndGroups are the IDs of a pod; nil: the cluster chooses.
type userAndGroups struct{ user, group, fsGroup *int64 }

// oneUser is a user whose group has the same ID, who owns the files.
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
