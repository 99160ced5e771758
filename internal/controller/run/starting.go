package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// pullGrace is how long pulling an image may fail: long enough for a registry to recover, and short enough to report a
// wrong name soon.
const pullGrace = 5 * time.Minute

// silentGrace is how long a runner may work without a first report before the Run reports where to look. The runner
// retries until the API server accepts its report.
const silentGrace = time.Minute

// starting reports why a pod does not start its runner, and ends the Run in time.
func starting(s state) (plan, bool) {
	switch {
	case s.progress() != nil:
		return plan{}, false // it works, even if the kubelet has not reported it yet
	case runnerRuns(s.pod()):
		return runnerStarting(s), true
	}
	return podStarting(s), true
}

// runnerRuns reports whether the runner of a pod runs, according to the kubelet.
func runnerRuns(pod *corev1.Pod) bool {
	container := runnerpod.RunnerStatus(pod)
	return container != nil && container.State.Running != nil
}

// runnerStarting waits for the first report, beyond limits.pending too: a runner that lacks its Secret ends soon, and
// any other may be at work although its reports do not arrive.
func runnerStarting(s state) plan {
	reason, message := startMessage(s)
	wake := earlier(overrunIn(s), pauseRetryIn(s, runnerpod.SignalsIn(s.pod())))
	switch left := pendingLeft(s); {
	case wantsPause(s):
		reason, message = v1alpha1.ReasonStarting, pausingMessage
	case left > 0 && reason == v1alpha1.ReasonSecretMissing: // its message has this time
		wake = earlier(wake, left)
	}
	return runnerSilent(s, waiting(reason, message, wake))
}

// podStarting waits for the container of the runner.
func podStarting(s state) plan {
	pod := s.pod()
	if gated(pod) {
		return waitingUnbounded(s, v1alpha1.ReasonQueued, "The pod has scheduling gates; the controller that set them decides when it starts")
	}
	if p, lost := sourceLostBeforeStart(s); lost {
		return p
	}
	if p, lost := volumeLostBeforeStart(s); lost {
		return p
	}
	if unplaced := unschedulable(pod); unplaced != "" {
		p := waitingBounded(s, v1alpha1.ReasonUnschedulable, strings.TrimSuffix(sentence(unplaced, otherWarning(s.startupWarning)), ".")+". "+schedulingAdvice(s, unplaced))
		if forVolume(unplaced) {
			p = withWarningCheck(s, p) // the scheduler may know of a deleted claim before the cache
		}
		return p
	}
	if container := stuckContainer(pod); container != nil {
		return containerStuck(s, container)
	}
	if s.missingConfigMap != "" {
		return withWarningCheck(s, waitingFor(s, v1alpha1.ReasonPending, s.missingConfigMap, within))
	}
	if s.startupWarning != "" {
		return withWarningCheck(s, waitingBounded(s, v1alpha1.ReasonPending, "The pod does not start: "+s.startupWarning))
	}
	return withWarningCheck(s, nothingInTheWay(s))
}

// nothingInTheWay waits for a pod of which no message says why it does not start.
func nothingInTheWay(s state) plan {
	reason, message := startMessage(s)
	if reason == v1alpha1.ReasonSecretMissing {
		return waitingFor(s, reason, recordedCause(s), within)
	}
	p := waitingBounded(s, reason, startStage(s.pod()))
	switch p.reason {
	case reason:
		p.message = message
	case v1alpha1.ReasonPaused:
		p.message = children.PausedMessage(s.run)
	}
	return p
}

// startStage describes how far a pod is on the way to its runner, for a Run that ends before it starts.
func startStage(pod *corev1.Pod) string {
	if !scheduled(pod) {
		return fmt.Sprintf("pod %s, which the scheduler has not given to a cluster node", pod.Name)
	}
	for _, c := range pod.Status.InitContainerStatuses {
		if c.State.Running != nil && !c.Ready {
			return fmt.Sprintf("pod %s, whose container %s is still running; its log may say why: kubectl logs %[1]s -c %[2]s -n %[3]s", pod.Name, c.Name, pod.Namespace)
		}
	}
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if w := c.State.Waiting; w != nil && w.Reason != "PodInitializing" {
			return fmt.Sprintf("pod %s, whose container %s waits (%s)", pod.Name, c.Name, sentence(w.Reason, w.Message))
		}
	}
	return fmt.Sprintf("pod %s, which the kubelet of its cluster node has not started", pod.Name)
}

// runnerSilent replaces reason and message for a runner that works without reporting: it lacks no Secret by then.
func runnerSilent(s state, p plan) plan {
	if left := startedAt(s).Add(silentGrace).Sub(s.now); left > 0 {
		p.wake = earlier(p.wake, left)
		return p
	}
	p.reason, p.message = v1alpha1.ReasonStarting, fmt.Sprintf("The runner has not written a status since its pod started, more than %s ago. Its log says why: kubectl logs %s -c %s -n %s. "+
		"Usually its requests to the API server are refused (look at the RoleBindings of ServiceAccount %s) or do not arrive (look at the NetworkPolicies)",
		silentGrace, s.pod().Name, runnerpod.RunnerContainer, s.run.Namespace, v1alpha1.RunnerServiceAccount)
	return p
}

// withWarningCheck sets an early wake, because no event reports a new warning.
func withWarningCheck(s state, p plan) plan {
	if p.settles() {
		return p
	}
	p.wake = earlier(p.wake, eventDelay)
	if left := mountDelay - s.now.Sub(s.pod().CreationTimestamp.Time); left > 0 && s.revision != nil && len(runnerpod.RequiredConfigMaps(podInputOf(s, s.attempt()))) > 0 {
		p.wake = earlier(p.wake, left)
	}
	return p
}

// startMessage returns the message about an attempt that has not reported yet. After an attempt that only waited, it
// says what that one waited for: only the runner can find out whether it exists now.
func startMessage(s state) (reason, message string) {
	a := s.run.Status.Attempt
	since := s.run.Status.Internal.PendingSince
	if reasonOf(s.run) == v1alpha1.ReasonSecretMissing && since != nil && since.Time.Before(a.StartedAt.Time) {
		return v1alpha1.ReasonSecretMissing, untilPending(s, recordedCause(s)+within)
	}
	return v1alpha1.ReasonStarting, fmt.Sprintf("Starting attempt %d", a.Number)
}

// gated reports whether scheduling of a pod is held back on purpose, for example by Kueue.
func gated(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonSchedulingGated {
			return true
		}
	}
	return false
}

// unschedulable returns the scheduler's message if no node fits the pod.
func unschedulable(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
			return strings.TrimSuffix(c.Message, ". not found.") // of preemption, which has nothing to do with it
		}
	}
	return ""
}

// otherWarning returns the warning of an event about an unschedulable pod, unless it repeats the scheduler's message.
func otherWarning(trouble string) string {
	if strings.HasPrefix(trouble, "FailedScheduling: ") {
		return ""
	}
	return trouble
}

// schedulingAdvice returns what to do about an unschedulable pod, by the scheduler's message.
func schedulingAdvice(s state, unplaced string) string {
	switch class := storageClass(s); {
	case outOfReach(unplaced) && copiesSource(s, s.attempt()):
		return sourceAdvice(s)
	case !forVolume(unplaced):
		return "Free resources on the cluster nodes, or change spec.podTemplate of the Agent"
	case class != "":
		return fmt.Sprintf("Look at StorageClass %s (kubectl get storageclass), or correct spec.workspace.storageClassName of the Agent", class)
	}
	return "Set spec.workspace.storageClassName of the Agent, or make a StorageClass the default (kubectl get storageclass)"
}

// outOfReach reports whether a message of the scheduler names nodes that do not reach a volume.
func outOfReach(unplaced string) bool {
	return slices.ContainsFunc([]string{
		"didn't match PersistentVolume's node affinity",
		"volume node affinity conflict", // of older schedulers
		"no available volume zone",
	}, func(reason string) bool { return strings.Contains(unplaced, reason) })
}

// sourceAdvice returns what to do if no node takes a pod that copies from the volume of the Run which is continued.
func sourceAdvice(s state) string {
	from := s.run.Status.ContinuedFrom
	if sharesSource(s.run) {
		return fmt.Sprintf("The pod works on the volume of Run %s, which this Run continues, and not every cluster node reaches that volume (PersistentVolumeClaim %s). Free resources on the nodes that do, or let spec.podTemplate of the Agent select them", from.Runs[0], from.VolumeClaim)
	}
	text := fmt.Sprintf("The pod copies from the volume of Run %s, which this Run continues, and not every cluster node reaches that volume (PersistentVolumeClaim %s). Free resources on the nodes that do, or let spec.podTemplate of the Agent select them", from.Runs[0], from.VolumeClaim)
	if s.durable() {
		text += ". If this Run's own volume is in another zone, set spec.workspace.storageClassName of the Agent to a StorageClass with volumeBindingMode: WaitForFirstConsumer, and create a new Run"
	}
	return text
}

// storageClass returns the StorageClass in the Agent for the volume of the Run; empty: the default.
func storageClass(s state) string {
	if s.revision == nil || s.revision.Agent.Workspace.StorageClassName == nil {
		return ""
	}
	return *s.revision.Agent.Workspace.StorageClassName
}

// forVolume reports whether a message of the scheduler is about the volume of the Run. The scheduler writes both
// PersistentVolumeClaim and persistentvolumeclaim.
func forVolume(unplaced string) bool {
	return strings.Contains(strings.ToLower(unplaced), "persistentvolumeclaim")
}

// Waiting reasons of a kubelet that a user must resolve.
var (
	pullReasons      = []string{"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"}
	startReasons     = []string{"CreateContainerConfigError", "CreateContainerError", "RunContainerError", "CrashLoopBackOff"}
	finalPullReasons = []string{"InvalidImageName", "ErrImageNeverPull"}
)

// stuckContainer returns the first container that waits for a user to act, in the order in
// which containers start; nil: there is none.
func stuckContainer(pod *corev1.Pod) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range list {
			w := list[i].State.Waiting
			if w != nil && slices.Contains(slices.Concat(pullReasons, startReasons, finalPullReasons), w.Reason) {
				return &list[i]
			}
		}
	}
	return nil
}

// containerStuck returns the plan for a container that waits for a user to act.
func containerStuck(s state, container *corev1.ContainerStatus) plan {
	why := sentence(container.State.Waiting.Reason, container.State.Waiting.Message)
	switch reason := container.State.Waiting.Reason; {
	case reason == "InvalidImageName":
		return failure(v1alpha1.ReasonInvalidImage, fmt.Sprintf("%q is not an image name. Correct %s", container.Image, imageField(container.Name)))
	case reason == "ErrImageNeverPull":
		return failure(v1alpha1.ReasonImagePullFailed, why+". Load the image onto the cluster node, or allow to pull it")
	case slices.Contains(pullReasons, reason):
		return pulling(s, container, why)
	case reason == "CreateContainerConfigError" && strings.HasPrefix(container.Name, runnerpod.ServerPrefix):
		return waitingFor(s, v1alpha1.ReasonSecretMissing, fmt.Sprintf("The MCP server in container %s lacks a Secret, or a key of it (%s)", container.Name, container.State.Waiting.Message), byItself)
	}
	return waitingBounded(s, v1alpha1.ReasonStarting, sentence("container "+container.Name, why))
}

// imageField returns the field with the image of a container.
func imageField(container string) string {
	switch {
	case container == runnerpod.SandboxContainer:
		return "spec.sandbox.image of the Agent"
	case container == runnerpod.InstallContainer || container == runnerpod.FetchContainer:
		return "runner.image of the chart"
	case strings.HasPrefix(container, runnerpod.ServerPrefix):
		return fmt.Sprintf("spec.stdio.container.image of the Toolset of container %s", container)
	}
	return "spec.podTemplate.runnerImage of the Agent"
}

// scheduled reports whether a pod has a cluster node.
func scheduled(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue
	})
}

// scheduledAt returns when a pod was scheduled. Before that no image was pulled.
func scheduledAt(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
			return c.LastTransitionTime.Time
		}
	}
	return pod.CreationTimestamp.Time
}

// pullSecretsOf names the Secrets with which images are pulled. The kubelet ignores a missing Secret, and then reports
// only that the registry refused access.
func pullSecretsOf(s state) string {
	if s.revision == nil {
		return ""
	}
	names := runnerpod.PullSecrets(podInputOf(s, s.attempt()))
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf("; the pull Secrets %s must exist in namespace %s", strings.Join(names, ", "), s.run.Namespace)
}

// pulling ends a Run whose image cannot be pulled for so long that the image must be wrong. Before that, only
// limits.pending ends it, with another reason: the time may have passed until there was a cluster node.
func pulling(s state, container *corev1.ContainerStatus, why string) plan {
	why += pullSecretsOf(s)
	message := fmt.Sprintf("Image %q cannot be pulled yet (%s)", container.Image, why)
	if wantsPause(s) {
		return waitingUnbounded(s, v1alpha1.ReasonImagePulling, message)
	}
	since := scheduledAt(s.pod())
	if pending := s.pendingSince(); pending.After(since) {
		since = pending // it was paused
	}
	until := since.Add(pullGrace)
	if s.pendingSince().Add(s.limits().pending).Before(until) { // too early to say that the image is wrong
		return waitingBounded(s, v1alpha1.ReasonImagePulling, fmt.Sprintf("Image %q (%s) cannot be pulled yet, tried since %s (%s)", container.Image, imageField(container.Name), since.UTC().Format("15:04:05 UTC"), why))
	}
	left := until.Sub(s.now)
	if left <= 0 {
		return failure(v1alpha1.ReasonImagePullFailed, fmt.Sprintf("Image %q could not be pulled within %s (%s). Correct %s, or add imagePullSecrets to spec.podTemplate of the Agent", container.Image, pullGrace, why, imageField(container.Name)))
	}
	return waiting(v1alpha1.ReasonImagePulling, runstatus.WithDeadline(message, until, pullGrace, fmt.Sprintf("%s for pulling an image", pullGrace)), left)
}

const (
	// eventDelay is how long a pod may take to start before its events are read.
	eventDelay = 20 * time.Second
	// maxWarning bounds how much of an event a message repeats.
	maxWarning = 512
	// maxEvents is the maximum number of events that are read.
	maxEvents = 50
)

// isSilent reports whether a pod has not started for a while, and no container status has a cause, as with volumes that
// cannot be mounted.
func isSilent(s state, delay time.Duration) bool {
	pod := s.pod()
	if !runnerpod.IsAlive(pod) || s.progress() != nil || pod.DeletionTimestamp != nil || gated(pod) {
		return false
	}
	started := slices.ContainsFunc(slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses), func(container corev1.ContainerStatus) bool {
		return container.State.Running != nil || container.State.Terminated != nil
	})
	return !started && stuckContainer(pod) == nil && s.now.Sub(pod.CreationTimestamp.Time) >= delay
}

// observeStartupWarning returns the last warning about a pod that does not start, or about its volume; empty: there is
// none. A warning about the volume comes first, because a volume that cannot be provisioned also keeps the pod from
// being scheduled.
func (r *Reconciler) observeStartupWarning(ctx context.Context, s state) (string, error) {
	if s.missingConfigMap != "" || !isSilent(s, eventDelay) {
		return "", nil
	}
	pod := s.pod()
	if s.volume != nil && s.volume.Status.Phase != corev1.ClaimBound {
		if text, err := r.lastWarning(ctx, pod.Namespace, s.volume.UID); text != "" || err != nil {
			return text, err
		}
	}
	return r.lastWarning(ctx, pod.Namespace, pod.UID)
}

// lastWarning returns the last warning about an object.
func (r *Reconciler) lastWarning(ctx context.Context, namespace string, uid types.UID) (string, error) {
	var list corev1.EventList
	about := client.MatchingFields{"involvedObject.uid": string(uid), "type": corev1.EventTypeWarning}
	if err := r.live.List(ctx, &list, client.InNamespace(namespace), about, client.Limit(maxEvents)); err != nil {
		return "", fmt.Errorf("listing Events: %w", err)
	}
	if len(list.Items) == 0 {
		return "", nil
	}
	last := slices.MaxFunc(list.Items, func(a, b corev1.Event) int { return lastSeen(a).Compare(lastSeen(b)) })
	text := strings.Join(strings.Fields(sentence(last.Reason, last.Message)), " ")
	return task.Cut(text, maxWarning), nil
}

// lastSeen returns when an event was last seen. The creation time counts only if its writer
// gave no time.
func lastSeen(e corev1.Event) time.Time {
	at := e.LastTimestamp.Time
	if e.EventTime.After(at) {
		at = e.EventTime.Time
	}
	if e.Series != nil && e.Series.LastObservedTime.After(at) {
		at = e.Series.LastObservedTime.Time
	}
	if at.IsZero() {
		at = e.CreationTimestamp.Time
	}
	return at
}

// mountDelay is how long a pod may take to start before its ConfigMaps are checked, so that a pod that starts in time
// costs no request.
const mountDelay = 3 * time.Second

// missingConfigMap returns which ConfigMap a pod that does not start waits for; empty: all of them exist. The status of
// a pod does not show this, and the event of the kubelet may be late or lost.
func missingConfigMap(ctx context.Context, live client.Reader, s state) (string, error) {
	if s.revision == nil || !isSilent(s, mountDelay) || unschedulable(s.pod()) != "" {
		return "", nil
	}
	for _, required := range runnerpod.RequiredConfigMaps(podInputOf(s, s.attempt())) {
		switch exists, hasKey, err := findConfigMap(ctx, live, s.run.Namespace, required); {
		case err != nil:
			return "", fmt.Errorf("getting ConfigMap %s: %w", required.Name, err)
		case !exists:
			return configMapMissing(s.run.Namespace, required), nil
		case !hasKey:
			return keyMissing(s.run.Namespace, required), nil
		}
	}
	return "", nil
}

// findConfigMap reads a ConfigMap, with its data only if one of its keys is required.
func findConfigMap(ctx context.Context, live client.Reader, namespace string, required runnerpod.RequiredConfigMap) (exists, hasKey bool, err error) {
	key := client.ObjectKey{Namespace: namespace, Name: required.Name}
	if required.Key == "" {
		found := &metav1.PartialObjectMetadata{}
		found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		err := live.Get(ctx, key, found)
		return err == nil, true, client.IgnoreNotFound(err)
	}
	var found corev1.ConfigMap
	if err := live.Get(ctx, key, &found); err != nil {
		return false, false, client.IgnoreNotFound(err)
	}
	_, text := found.Data[required.Key]
	_, binary := found.BinaryData[required.Key]
	return true, text || binary, nil
}

func configMapMissing(namespace string, required runnerpod.RequiredConfigMap) string {
	file := "FILE"
	if required.Key != "" {
		file = required.Key + "=FILE"
	}
	return fmt.Sprintf("ConfigMap %s (%s) not found in namespace %s; create it: kubectl create configmap %s -n %s --from-file=%s", required.Name, required.Field, namespace, required.Name, namespace, file)
}

func keyMissing(namespace string, required runnerpod.RequiredConfigMap) string {
	return fmt.Sprintf("ConfigMap %s (%s) has no key %s in namespace %s; add it: kubectl edit configmap %s -n %s", required.Name, required.Field, required.Key, namespace, required.Name, namespace)
}
