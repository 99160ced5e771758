package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// attemptOutcome is how an attempt ended.
type attemptOutcome struct {
	budget  budget
	reason  string // of Succeeded, should the Run end with it
	message string
	// final: trying again would change nothing.
	final bool
	// success: the work is done.
	success bool
}

// retried are the reasons of failures after which another attempt may succeed.
var retried = []string{
	v1alpha1.ReasonModelUnavailable,
	v1alpha1.ReasonToolUnavailable,
	v1alpha1.ReasonRunnerFailed,
	v1alpha1.ReasonOutOfMemory,
	v1alpha1.ReasonInvalidOutput,
}

// outcomeOfResult classifies a committed result.
func outcomeOfResult(r v1alpha1.Result) attemptOutcome {
	v := attemptOutcome{budget: budgetRetries, reason: r.Reason, message: r.Message}
	v.success = r.Reason == v1alpha1.ReasonFinished
	if r.Warning != "" {
		v.message = messageWithWarning(r)
	}
	v.final = v.success || !slices.Contains(retried, r.Reason)
	if v.final && !v.success && !slices.Contains(v1alpha1.FailureReasons, r.Reason) {
		v.reason, v.message = v1alpha1.ReasonRunnerFailed, sentence(fmt.Sprintf("the runner ended with the unknown reason %q", r.Reason), r.Message)
	}
	return v
}

// outcomeOfPod classifies a runner that ended without a result: by the state of the pod, then by the state of the
// container, then by its exit code.
func outcomeOfPod(pod *corev1.Pod) attemptOutcome {
	podLost := func(message string) attemptOutcome {
		return attemptOutcome{budget: budgetDisruptions, reason: v1alpha1.ReasonPodLost, message: message}
	}
	if exceededStorage(pod) {
		return attemptOutcome{final: true, reason: v1alpha1.ReasonStorageFull, message: sentence("raise workspace.size of the Agent", pod.Status.Message)}
	}
	if why := disruption(pod); why != "" {
		return podLost(why)
	}
	if pod.Status.Reason == "DeadlineExceeded" {
		return attemptOutcome{final: true, reason: v1alpha1.ReasonDurationLimit, message: "the pod exceeded its deadline, which is limits.duration plus how long it may wait for users and models (limits.wait, limits.modelOutage)"}
	}
	if v, is := outcomeOfInitContainers(pod); is {
		return v
	}
	end := runnerpod.Terminated(pod)
	if end == nil {
		return podLost(sentence(fmt.Sprintf("pod %s ended without running", pod.Name), pod.Status.Message))
	}
	if end.Reason == "OOMKilled" {
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonOutOfMemory, message: "the runner used more memory than its limit; raise podTemplate.resources of the Agent"}
	}
	if v, is := outcomeOfStart(runnerpod.RunnerContainer, end); is {
		return v
	}
	return outcomeOfExit(end, runnerpod.Termination(pod))
}

// outcomeOfStart classifies a container that could not be started, by the message of the container runtime; false: it
// was started. Such a container has no log.
func outcomeOfStart(container string, end *corev1.ContainerStateTerminated) (attemptOutcome, bool) {
	if !slices.Contains([]string{"StartError", "ContainerCannotRun"}, end.Reason) {
		return attemptOutcome{}, false
	}
	words := strings.TrimSuffix(untrusted.Words(end.Message, task.MaxMessage/2), ".")
	message := sentence(fmt.Sprintf("container %s could not be started (%s)", container, end.Reason), words) +
		fmt.Sprintf(". If its limit of memory is below 64Mi, raise podTemplate.resources of the Agent; else check %s and the cluster node", imageField(container))
	return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonRunnerFailed, message: message}, true
}

// killed is the exit code of a container after SIGKILL.
const killed = 137

// outcomeOfExit classifies by the exit code and, if that is not enough, by the termination message.
func outcomeOfExit(end *corev1.ContainerStateTerminated, t *task.Termination) attemptOutcome {
	said := task.Result{}
	if t != nil {
		said = t.Result
	}
	if end.ExitCode == killed && said.Reason == task.ReasonRunnerFailed { // its liveness probe says why it was ended
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonRunnerFailed, message: said.Message}
	}
	switch end.ExitCode {
	// A runner that waits but could not report it is resumed. A fenced runner was replaced. If it belongs to the
	// current attempt, its pod was not recorded in time, which counts as a disruption.
	case task.ExitCommitted, task.ExitFenced, task.ExitInterrupted, task.ExitWaiting, killed:
		return attemptOutcome{budget: budgetDisruptions, reason: v1alpha1.ReasonPodLost, message: fmt.Sprintf("the runner ended with code %d before it had a result", end.ExitCode)}
	case task.ExitConfig:
		switch said.Reason { //nolint:exhaustive // all other reasons are Misconfigured
		case task.ReasonSecretMissing:
			return secretMissing(said.Message)
		case task.ReasonNothingToContinue:
			return attemptOutcome{final: true, reason: v1alpha1.ReasonNothingToContinue, message: said.Message}
		}
		return attemptOutcome{final: true, reason: v1alpha1.ReasonMisconfigured, message: cmp.Or(said.Message, "the runner refused its configuration; its log says more: kubectl logs of the pod")}
	case task.ExitLimit:
		return attemptOutcome{final: true, reason: v1alpha1.ReasonRunnerFailed, message: "the runner reached a limit and could not say which"}
	case task.ExitBadTask:
		return attemptOutcome{final: true, reason: v1alpha1.ReasonMisconfigured, message: sentence("the runner refused its task", said.Message)}
	case task.ExitUnavailable:
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonModelUnavailable, message: said.Message}
	}
	message := said.Message
	if message == "" {
		message = fmt.Sprintf("the runner ended with code %d; its log says more: kubectl logs of the pod", end.ExitCode)
	}
	return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonRunnerFailed, message: message}
}

// secretMissing waits for a Secret, as a runner that cannot begin without it reports. Runners before v0.1.0 wrote the
// promise themselves.
func secretMissing(message string) attemptOutcome {
	return attemptOutcome{budget: budgetNone, reason: v1alpha1.ReasonSecretMissing, message: strings.TrimSuffix(message, within)}
}

// exceededStorage reports whether a pod was evicted because of its own files and not because of pressure on its node.
// Only the message of the kubelet tells these apart.
func exceededStorage(pod *corev1.Pod) bool {
	return pod.Status.Reason == "Evicted" && strings.Contains(pod.Status.Message, "exceeds the") && strings.Contains(pod.Status.Message, "limit")
}

// disruption returns how infrastructure ended a pod, or an empty text.
func disruption(pod *corev1.Pod) string {
	switch pod.Status.Reason {
	case "Evicted", "Preempting", "NodeLost", "NodeShutdown", "Terminated", "NodeAffinity", "UnexpectedAdmissionError":
		return sentence(fmt.Sprintf("pod %s was lost (%s)", pod.Name, pod.Status.Reason), pod.Status.Message)
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget && c.Status == corev1.ConditionTrue {
			return sentence(fmt.Sprintf("pod %s was disrupted (%s)", pod.Name, c.Reason), c.Message)
		}
	}
	if pod.DeletionTimestamp != nil {
		return fmt.Sprintf("pod %s was deleted", pod.Name)
	}
	return ""
}

// endAttempt decides what follows from how an attempt ended: the Run ends, or the next attempt
// starts if a limit and the time allow it.
func endAttempt(s state, v attemptOutcome) plan {
	switch {
	case v.success:
		return plan{reason: v1alpha1.ReasonFinished, message: cmp.Or(v.message, defaultResultMessage), outcome: metav1.ConditionTrue}
	case v.final:
		return failure(v.reason, v.message)
	case s.run.Spec.DesiredState == v1alpha1.DesiredStopped:
		return failure(v1alpha1.ReasonStopped, sentence("Stopped by spec.desiredState", v.message))
	case s.hasSideEffects() && !s.durable():
		return effectsLost(v)
	}
	if p, late := expired(s); late {
		return p
	}
	if p, spent := exhausted(s, v); spent {
		return p
	}
	return retry(s, v)
}

// effectsLost ends a Run that may have changed something: another attempt would have a new pod without
// its journal, and could repeat it.
func effectsLost(v attemptOutcome) plan {
	reason, journal := v.reason, "the next attempt would not have its journal, which is in the pod of this one"
	switch v.budget {
	case budgetDisruptions:
		reason, journal = v1alpha1.ReasonPodLost, "its journal was lost with the pod"
	case budgetNone:
		reason = v1alpha1.ReasonMisconfigured
	case budgetRetries:
	}
	why := "The agent had already changed something and " + journal + ", so the Run is not started again"
	return failure(reason, sentence(why, strings.TrimSuffix(v.message, "."))+
		". Check what was changed, and create a new Run; with workspace.durability: Volume of the Agent, the next attempt continues instead")
}

// exhausted ends the Run if it has reached the limit of attempts with this kind of outcome.
func exhausted(s state, v attemptOutcome) (plan, bool) {
	failures, disruptions := s.run.Status.Failures, s.run.Status.Disruptions
	switch budget := budgetLimit(s.run, v.budget); {
	case v.budget == budgetNone:
		p := waitingFor(s, v.reason, v.message, within)
		return p, p.settles()
	case budget == 0:
		return failure(v.reason, v.message), true
	case v.budget == budgetRetries && failures >= budget:
		return failure(v.reason, fmt.Sprintf("%d attempts failed, the last: %s", failures+1, v.message)), true
	case v.budget == budgetDisruptions && disruptions >= budget:
		return failure(v.reason, fmt.Sprintf("%d attempts were lost to infrastructure, the last because %s", disruptions+1, v.message)), true
	}
	return plan{}, false
}

// Defaults of spec.maxRetries and spec.maxDisruptions. The schema has none, because a Run of a
// Workflow may have neither field.
const (
	defaultRetries     = 1
	defaultDisruptions = 10
)

// budgetLimit returns how many attempts may count against a budget.
func budgetLimit(run *v1alpha1.Run, c budget) int32 {
	of, standard := run.Spec.MaxRetries, int32(defaultRetries)
	if c == budgetDisruptions {
		of, standard = run.Spec.MaxDisruptions, defaultDisruptions
	}
	if of == nil {
		return standard
	}
	return *of
}

// retry starts the next attempt once the pod of this one has ended and the backoff has passed.
func retry(s state, v attemptOutcome) plan {
	reason, message := v1alpha1.ReasonRetrying, fmt.Sprintf("Attempt %d follows, because %s", s.attempt()+1, v.message)
	if v.budget == budgetNone {
		reason, message = v.reason, untilPending(s, task.Cut(v.message, runstatus.MaxCause-len(within))+within)
	}
	message = task.Cut(message, task.MaxMessage)
	if pod := s.pod(); runnerpod.IsAlive(pod) {
		p := waiting(reason, message, leaveGrace)
		if !s.now.Before(reportedAt(s).Add(leaveGrace)) {
			p.remove = []corev1.Pod{*pod} // it committed and does not leave
		}
		return p
	}
	if runnerpod.IsStopping(s.pod()) {
		return waiting(reason, message, leaveGrace) // its sandbox may still have the files
	}
	if wantsPause(s) {
		return waiting(v1alpha1.ReasonPaused, children.PausedMessage(s.run), 0)
	}
	if left := endedAt(s).Add(retryDelay(s, v.budget)).Sub(s.now); left > 0 {
		if v.budget == budgetNone { // limits.pending may end the Run before
			left = min(left, pendingLeft(s))
		}
		return waiting(reason, message, left)
	}
	p := waiting(reason, message, 0)
	p.nextAttempt, p.charged = nextAttempt(s, v.budget), v.budget
	if t := runnerpod.Termination(s.pod()); t != nil && t.Attempt == int(s.attempt()) && !waitedForSecret(s.pod()) {
		p.termination = t // it used more than it could report
	}
	return p
}

// reportedAt returns when the current attempt last reported.
func reportedAt(s state) time.Time {
	if p := s.progress(); p != nil {
		return time.UnixMilli(p.Sequence)
	}
	return s.now
}

// endedAt returns when the current attempt ended, or started if that is not known.
func endedAt(s state) time.Time {
	if end := runnerpod.Terminated(s.pod()); end != nil && !end.FinishedAt.IsZero() {
		return end.FinishedAt.Time
	}
	return s.run.Status.Attempt.StartedAt.Time
}

// Back-off between attempts: 10 s, doubled up to 5 min. The first disruption
// costs no wait: the work did nothing wrong.
const (
	firstBackoff = 10 * time.Second
	maxBackoff   = 5 * time.Minute
)

// retryDelay returns how long after an attempt the next may begin. The delay of attempts that only waited grows with
// the time they have waited already.
func retryDelay(s state, c budget) time.Duration {
	if c == budgetNone {
		return max(firstBackoff, min(endedAt(s).Sub(s.pendingSince()), maxRefusedWait))
	}
	return backoff(s.run, c)
}

func backoff(run *v1alpha1.Run, c budget) time.Duration {
	n := run.Status.Failures + run.Status.Disruptions
	if c == budgetDisruptions {
		n--
	}
	if n < 0 {
		return 0
	}
	return min(firstBackoff<<min(n, 10), maxBackoff)
}

// outcomeOfInitContainers classifies a pod whose runner never started because an init
// container failed; false: none did.
func outcomeOfInitContainers(pod *corev1.Pod) (attemptOutcome, bool) {
	for _, container := range pod.Status.InitContainerStatuses {
		end := container.State.Terminated
		if end == nil || end.ExitCode == 0 || runnerpod.IsGuarded(container.Name) {
			continue // a sidecar that ends is started again
		}
		if v, is := outcomeOfStart(container.Name, end); is {
			return v, true
		}
		if container.Name == runnerpod.FetchContainer {
			return outcomeOfFetch(end), true
		}
		message := sentence(fmt.Sprintf("container %s ended with code %d", container.Name, end.ExitCode), end.Reason, untrusted.Words(end.Message, task.MaxMessage))
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonRunnerFailed, message: task.Cut(message, task.MaxMessage)}, true
	}
	return attemptOutcome{}, false
}

// outcomeOfFetch classifies by the exit codes that runners use. Servers that could not be reached may be available in
// the next attempt.
func outcomeOfFetch(end *corev1.ContainerStateTerminated) attemptOutcome {
	said := task.Result{}
	if t := runnerpod.DecodeTermination(end); t != nil {
		said = t.Result
	}
	message := cmp.Or(said.Message, fmt.Sprintf("filling the workspace ended with code %d; its log says more: kubectl logs of the pod, container %s", end.ExitCode, runnerpod.FetchContainer))
	switch {
	case end.Reason == "OOMKilled":
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonOutOfMemory, message: "filling the workspace took more memory than its limit; raise podTemplate.resources of the Agent, or set git.depth: 1"}
	case said.Reason == task.ReasonSecretMissing:
		return secretMissing(message)
	case said.Reason == task.ReasonStorageFull, said.Reason == task.ReasonNothingToContinue:
		return attemptOutcome{final: true, reason: string(said.Reason), message: message}
	case end.ExitCode == task.ExitConfig || end.ExitCode == task.ExitBadTask:
		return attemptOutcome{final: true, reason: v1alpha1.ReasonMisconfigured, message: message}
	case end.ExitCode == task.ExitUnavailable:
		return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonToolUnavailable, message: message}
	case end.ExitCode == 137 || end.ExitCode == task.ExitInterrupted:
		return attemptOutcome{budget: budgetDisruptions, reason: v1alpha1.ReasonPodLost, message: message}
	}
	return attemptOutcome{budget: budgetRetries, reason: v1alpha1.ReasonRunnerFailed, message: message}
}

// waitedForSecret reports whether an attempt ended before its first call because a Secret was missing. Such an attempt
// counts against no limit, not even limits.duration, and its pod is deleted when the next attempt starts.
func waitedForSecret(pod *corev1.Pod) bool {
	if pod == nil || runnerpod.IsAlive(pod) || outcomeOfPod(pod).reason != v1alpha1.ReasonSecretMissing {
		return false
	}
	t := runnerpod.Termination(pod)
	if t == nil {
		return true // an init container waited: the runner did not start
	}
	before := runnerpod.TaskIn(pod).Meter
	return t.Counts.Steps <= before.Steps && t.Counts.ModelCalls <= before.ModelCalls && t.Counts.ToolCalls <= before.ToolCalls
}

// hasWorked reports whether the runner of the current attempt worked before it ended.
func hasWorked(s state) bool {
	pod := s.pod()
	return runnerpod.Termination(pod) != nil && !waitedForSecret(pod)
}

// podsThatWaited returns the pods of earlier attempts that only waited for a Secret.
func podsThatWaited(s state) []corev1.Pod {
	var out []corev1.Pod
	for i := range s.pods {
		pod := &s.pods[i]
		if pod.Name != s.run.Status.Attempt.Pod && pod.DeletionTimestamp == nil && waitedForSecret(pod) {
			out = append(out, *pod)
		}
	}
	return out
}
