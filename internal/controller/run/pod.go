package run

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// uid is the user and group of everything in a runner pod: the one that
// distroless images call nonroot.
const uid int64 = 65532

// backstop is how much later than limits.duration the cluster ends a pod by
// itself, should nobody else: time to pull an image and to report.
const backstop = 10 * time.Minute

// patience is how much longer a pod may live because it may wait for people:
// where the journal dies with it, a paused Run holds in its pod.
func patience(w world) time.Duration {
	if w.durable() && !mayAsk(w.version.Snapshot) {
		return 0
	}
	return time.Duration(w.limits().task.WaitSeconds) * time.Second
}

// graceSeconds is how long a runner has after SIGTERM.
const graceSeconds int64 = 30

// podName is the name of an attempt's pod; long names of Runs are cut and
// told apart by a hash.
func podName(run string, attempt int32) string {
	suffix := "-" + strconv.Itoa(int(attempt))
	if len(run)+len(suffix) <= 63 {
		return run + suffix
	}
	hash := "-" + task.Hash([]byte(run))[:8]
	kept := strings.TrimRight(run[:63-len(hash)-len(suffix)], "-.")
	return kept + hash + suffix
}

// podOf is the pod of the current attempt.
func podOf(w world) *corev1.Pod {
	r := recipeOf(w)
	deadline := int64((remaining(w) + patience(w) + backstop).Seconds())
	grace, no := graceSeconds, false
	return &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       w.run.Namespace,
			Name:            w.run.Status.Attempt.Pod,
			Labels:          r.labels(),
			Annotations:     r.annotations(),
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w.run, v1alpha1.GroupVersion.WithKind("Run"))},
		},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			ServiceAccountName:            v1alpha1.RunnerServiceAccount,
			AutomountServiceAccountToken:  &no,
			EnableServiceLinks:            &no,
			TerminationGracePeriodSeconds: &grace,
			ActiveDeadlineSeconds:         &deadline,
			SecurityContext:               podSecurity(r.template),
			ImagePullSecrets:              r.supply.pullSecrets(r.template),
			NodeSelector:                  r.template.NodeSelector,
			Tolerations:                   append(lostNode(), r.template.Tolerations...),
			RuntimeClassName:              r.template.RuntimeClassName,
			PriorityClassName:             r.template.PriorityClassName,
			Affinity:                      r.neighbors(),
			InitContainers:                r.before(),
			Containers:                    []corev1.Container{r.execute()},
			Volumes:                       r.volumes(),
		},
	}
}

// foreign are the prefixes of labels that belong to whoever manages the Run's
// manifest: on a pod they would make GitOps tools adopt or prune it.
var foreign = []string{"app.kubernetes.io/", "argocd.argoproj.io/", "helm.sh/", "deckhand.dev/"}

// ownLabels are those that Deckhand reads.
func (r recipe) ownLabels() map[string]string {
	labels := map[string]string{
		"app.kubernetes.io/name":       "deckhand-runner",
		"app.kubernetes.io/managed-by": "deckhand",
		v1alpha1.LabelRun:              r.run.Name,
		v1alpha1.LabelAttempt:          strconv.Itoa(int(r.attempt())),
		v1alpha1.LabelAgent:            snapshot.Label(r.version.Agent.Name),
	}
	for _, part := range []string{v1alpha1.LabelWorkflowRun, v1alpha1.LabelWorkflowNode, v1alpha1.LabelParentRun} {
		if of := r.run.Labels[part]; of != "" {
			labels[part] = of // so that the logs of the whole are found
		}
	}
	if r.shares() {
		labels[v1alpha1.LabelVolumeClaim] = r.run.Status.Attempt.VolumeClaim
	}
	if r.fenced {
		labels[v1alpha1.LabelEgress] = r.egress().Label()
	}
	return labels
}

func isForeign(key string) bool {
	for _, prefix := range foreign {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	domain, _, _ := strings.Cut(key, "/")
	return strings.HasSuffix(domain, ".toolkit.fluxcd.io") || runstatus.IsRestoreMark(key)
}

// annotations carry the task, and ask those who would inject or evict to leave
// the pod alone: with one that is not durable goes the work.
func (r recipe) annotations() map[string]string {
	w, names := r.world, r.names()
	out := map[string]string{
		v1alpha1.AnnotationTask:                   string(encode(taskOf(w, w.attempt()))),
		v1alpha1.AnnotationRetention:              podRetention(w.version.Agent),
		"kubectl.kubernetes.io/default-container": runnerContainer,
		"eks.amazonaws.com/skip-containers":       names,
		"azure.workload.identity/skip-containers": names,
		"sidecar.istio.io/inject":                 "false",
	}
	if r.fenced {
		out[v1alpha1.AnnotationEgress] = r.egress().Label()
	}
	if !w.durable() {
		out["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false"
		out["karpenter.sh/do-not-disrupt"] = "true"
	}
	if said := opening(w); said != nil {
		out[v1alpha1.AnnotationSignals] = string(encode(said))
	}
	return out
}

// podRetention is how long a pod stays after its Run has finished; empty: the default.
func podRetention(a stored.Agent) string {
	if a.PodRetention == nil {
		return ""
	}
	return a.PodRetention.Duration.String()
}

// taskOf is what the runner of an attempt is told of its Run.
func taskOf(w world, attempt int32) task.Task {
	t := task.Task{
		Version:      task.Version,
		Run:          task.Run{Namespace: w.run.Namespace, Name: w.run.Name, UID: string(w.run.UID)},
		Attempt:      int(attempt),
		Prompt:       w.run.Spec.Prompt,
		Input:        inputOf(w.run.Spec),
		User:         w.run.Spec.User,
		Labels:       w.run.Labels,
		Limits:       w.limits().task,
		Durable:      w.durable(),
		SnapshotHash: w.version.RunnerHash,
	}
	if !t.Durable {
		t.Limits = raised(t.Limits, w.granted) // a durable journal remembers
	}
	p := w.run.Status.Progress
	if p == nil {
		return t
	}
	t.Meter = meterOf(*p)
	if p.Attempt < attempt && p.Result != nil && p.Result.Committed {
		t.Retry = task.Cut(sentence(p.Result.Reason, p.Result.Message), task.MaxMessage)
	}
	return t
}

// meterOf is what the attempts so far have used: it never falls.
func meterOf(p v1alpha1.RunProgress) step.Meter {
	m := step.Meter{
		Steps:           p.Counts.Steps,
		ModelCalls:      p.Counts.ModelCalls,
		ToolCalls:       p.Counts.ToolCalls,
		Errors:          p.Counts.Errors,
		DurationSeconds: p.Usage.DurationSeconds,
		Usage: step.Usage{
			InputTokens:      p.Usage.InputTokens,
			CacheReadTokens:  p.Usage.CacheReadTokens,
			CacheWriteTokens: p.Usage.CacheWriteTokens,
			OutputTokens:     p.Usage.OutputTokens,
			ReasoningTokens:  p.Usage.ReasoningTokens,
		},
	}
	if p.Usage.CostMicroUSD != nil {
		m.Usage.CostMicroUSD, m.Usage.Priced = *p.Usage.CostMicroUSD, true
	}
	return m
}

// encode is JSON of our own types, which always have one.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic("encoding our own type: " + err.Error())
	}
	return data
}

// podSecurity gives every container of the pod one user and group, who own the
// files.
func podSecurity(t stored.PodTemplate) *corev1.PodSecurityContext {
	yes, id, policy := true, uid, corev1.FSGroupChangeOnRootMismatch
	if t.RunAsUser != nil {
		id = *t.RunAsUser
	}
	return &corev1.PodSecurityContext{
		RunAsNonRoot:        &yes,
		RunAsUser:           &id,
		RunAsGroup:          &id,
		FSGroup:             &id,
		FSGroupChangePolicy: &policy,
		SeccompProfile:      &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// lostNode makes the cluster give a pod up on a dead node in one minute; its
// default is five.
func lostNode() []corev1.Toleration {
	after := int64(60)
	var out []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable} {
		out = append(out, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &after})
	}
	return out
}
