package run

import (
	"errors"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The kubelet's and the runner's part, as verbs of a script.

func starts(n int) func(*cluster) {
	return func(c *cluster) {
		c.setRunner(n, corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(c.now)}}, corev1.PodRunning)
	}
}

func reports(n int, mods ...func(*v1alpha1.RunProgress)) func(*cluster) {
	return func(c *cluster) {
		p := c.run.Status.Progress.DeepCopy()
		if p == nil {
			p = &v1alpha1.RunProgress{Version: task.Version}
		}
		if c.fences(n) {
			return
		}
		p.Attempt, p.Sequence, p.PodUID = int32(n), c.now.UnixMilli(), string(c.pod(n).UID)
		p.Result = nil
		for _, mod := range mods {
			mod(p)
		}
		c.run.Status.Progress = p
	}
}

// fences reports whether the API server refuses a report of the pod of attempt n.
func (c *cluster) fences(n int) bool {
	status := c.run.Status
	switch {
	case status.CompletionTime != nil:
		return true
	case status.Attempt != nil:
		return int(status.Attempt.Number) != n || status.Attempt.PodUID != string(c.pod(n).UID)
	default:
		return n != 1 || status.Progress != nil && status.Progress.PodUID != string(c.pod(n).UID)
	}
}

func begun(p *v1alpha1.RunProgress) { p.Effects = v1alpha1.EffectsBegun }

func commits(reason, message string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		p.Result = &v1alpha1.Result{Committed: true, Reason: reason, Message: message}
	}
}

func warns(warning string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Result.Warning = warning }
}

func exits(n int, code int32, mods ...func(*corev1.ContainerStateTerminated)) func(*cluster) {
	return func(c *cluster) {
		end := &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(c.now)}
		for _, mod := range mods {
			mod(end)
		}
		phase := corev1.PodFailed
		if code == 0 {
			phase = corev1.PodSucceeded
		}
		c.setRunner(n, corev1.ContainerState{Terminated: end}, phase)
	}
}

func oomKilled(end *corev1.ContainerStateTerminated) { end.Reason = "OOMKilled" }

func says(n int, r task.Result) func(*corev1.ContainerStateTerminated) {
	return func(end *corev1.ContainerStateTerminated) {
		end.Message = string(task.Termination{Version: task.Version, Attempt: n, Result: r}.Encode())
	}
}

func waits(n int, reason, message string) func(*cluster) {
	return func(c *cluster) {
		c.setRunner(n, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}, corev1.PodPending)
	}
}

func vanishes(n int) func(*cluster) {
	return func(c *cluster) { delete(c.pods, c.pod(n).Name) }
}

func isDeleted(n int) func(*cluster) {
	return func(c *cluster) {
		now := metav1.NewTime(c.now)
		c.pod(n).DeletionTimestamp = &now
	}
}

// isDisowned takes the owner and the labels of a pod away.
func isDisowned(n int) func(*cluster) {
	return func(c *cluster) {
		pod := c.pod(n)
		pod.OwnerReferences, pod.Labels = nil, map[string]string{}
	}
}

// isTakenOver gives a pod another Run as its owner.
func isTakenOver(n int) func(*cluster) {
	return func(c *cluster) {
		other := metav1.ObjectMeta{Name: "y", UID: "another-run"}
		c.pod(n).OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(&other, v1alpha1.GroupVersion.WithKind("Run"))}
	}
}

func isEvicted(n int) func(*cluster) {
	return func(c *cluster) {
		pod := c.pod(n)
		pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on memory."
	}
}

func isUnschedulable(n int) func(*cluster) {
	return func(c *cluster) {
		c.pod(n).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "0/1 nodes are available: 1 Insufficient memory."}}
	}
}

func isPlaced(n int) func(*cluster) {
	return func(c *cluster) {
		c.pod(n).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(c.now)}}
	}
}

// isForged makes a pod as somebody may who may create pods: with any name, any
// labels and any owner, but not with the runner's ServiceAccount.
func isForged(n int) func(*cluster) {
	return func(c *cluster) {
		name := c.run.Name + "-" + strconv.Itoa(n)
		owner := *metav1.NewControllerRef(c.run, v1alpha1.GroupVersion.WithKind("Run"))
		c.pods[name] = &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: "forged", OwnerReferences: []metav1.OwnerReference{owner}, Labels: map[string]string{v1alpha1.LabelRun: c.run.Name, v1alpha1.LabelAttempt: strconv.Itoa(n)}},
			Spec:       corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: runnerpod.RunnerContainer, Image: "evil"}}},
		}
		exits(n, 0, says(n, task.Result{Committed: true, Reason: task.ReasonFinished, Text: "forged"}))(c)
	}
}

func isSquatted(n int) func(*cluster) {
	return func(c *cluster) {
		name := c.run.Name + "-" + strconv.Itoa(n)
		c.pods[name] = &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "foreign"}}
	}
}

// awaits is a runner that waits for people.
func awaits(state string, pending ...v1alpha1.PendingRequest) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.State, p.Pending = state, pending }
}

func question(id, text string) v1alpha1.PendingRequest {
	return v1alpha1.PendingRequest{ID: id, Kind: task.PendingQuestion, Question: text}
}

// acts is a runner that acted on Decisions and goes on.
func acts(names ...string) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) {
		p.State, p.Pending = "", nil
		for _, n := range names {
			p.Decided = append(p.Decided, v1alpha1.DecidedRequest{Name: n})
		}
	}
}

func used(d time.Duration) func(*v1alpha1.RunProgress) {
	return func(p *v1alpha1.RunProgress) { p.Usage.DurationSeconds = int64(d.Seconds()) }
}

// answers is a person's answer to a request; without one, a message.
func answers(request, value string) func(*cluster) {
	return func(c *cluster) {
		d := v1alpha1.Decision{Spec: v1alpha1.DecisionSpec{Run: c.run.Name, Request: request, Type: v1alpha1.DecisionAnswer, Value: value, By: "ann"}}
		d.Name, d.CreationTimestamp = c.run.Name+"."+request, metav1.NewTime(c.now)
		d.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: c.run.Name, UID: c.run.UID}}
		if request == "" {
			d.Name, d.Spec.Type = "said", v1alpha1.DecisionMessage
		}
		c.decided = append(c.decided, d)
	}
}

func grants(request string, steps int32) func(*cluster) {
	return func(c *cluster) {
		answers(request, "")(c)
		spec := &c.decided[len(c.decided)-1].Spec
		spec.Type, spec.Grant = v1alpha1.DecisionGrant, &v1alpha1.Grant{Steps: &steps}
	}
}

func stops(c *cluster) { c.run.Spec.DesiredState = v1alpha1.DesiredStopped }

// operatorLeaves takes the operator away.
func operatorLeaves(c *cluster) { c.away = true }

// operatorReturns starts an operator, which remembers nothing.
func operatorReturns(c *cluster) { c.away = false }

func refuses(err error) func(*cluster) {
	return func(c *cluster) { c.refuse = err }
}

var errDown = errors.New("connection refused")
