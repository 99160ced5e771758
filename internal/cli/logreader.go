package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// A logReader reads the logs of the pods of a Run, attempt by attempt.
type logReader struct {
	f       *Factory
	o       logsOptions
	client  client.Client
	pods    *podReader
	key     client.ObjectKey
	printer *conversation.Printer
	out     io.Writer
	err     io.Writer
	// prefix begins each line of a child Run.
	prefix string
	// saysEnd is whether it prints the reason with which a Run failed.
	saysEnd bool
	// last is the Run when it was last read.
	last *v1alpha1.Run
	// done is the last attempt whose log is read to its end.
	done int
	// reading is the pod whose log was last opened.
	reading string
	// opened is whether a log was read. known are the attempts whose logs were read, or left out with a message.
	opened bool
	known  map[int]bool
	// waiting is the last message about a wait, for example for a pod.
	waiting string
}

func (r *logReader) read(ctx context.Context) error {
	for {
		complete, err := r.readOnce(ctx)
		switch {
		case err != nil && !r.continues(ctx, err):
			return whileWatched(r.last, err)
		case err == nil && (complete || !r.o.follow):
			return r.end(ctx, r.last)
		}
		if err := r.f.pause(ctx); err != nil {
			return err
		}
	}
}

// readOnce reads the logs of the existing pods, and reports whether nothing more can follow. The Run is read before its
// pods, so that no pod of a Run that has ended is missed.
func (r *logReader) readOnce(ctx context.Context) (bool, error) {
	run := &v1alpha1.Run{}
	if err := r.client.Get(ctx, r.key, run); err != nil {
		return false, err
	}
	if r.last != nil && r.last.UID != run.UID {
		return false, errReplaced(r.last)
	}
	r.last = run
	if last, _ := currentAttempt(run); isFinished(run) && r.o.attempt > last {
		return false, fmt.Errorf("run %s has ended (%s), and has no attempt %d: its last is %d", run.Name, reason(run), r.o.attempt, last)
	}
	complete, err := r.readPods(ctx, run)
	return complete && (isFinished(run) || r.o.attempt > 0 && r.done >= r.o.attempt), err
}

// continues reports whether a log is still followed after a failed request. The log of a finished Run may be on a
// cluster node that does not come back.
func (r *logReader) continues(ctx context.Context, err error) bool {
	if !r.o.follow || ctx.Err() != nil || r.printer.Err() != nil {
		return false
	}
	if !isUnreachable(err) && (!isServerError(err) || isFinished(r.last)) {
		return false
	}
	r.sayWaiting("Cannot read the log of Run " + r.key.Name + " and tries again: " + explain(err))
	return true
}

// unread returns the pods of the attempts that are not yet read, oldest first.
func (r *logReader) unread(ctx context.Context, run *v1alpha1.Run) ([]corev1.Pod, error) {
	r.pods.awaits = r.o.follow && !isFinished(run)
	pods, err := r.pods.list(ctx, run)
	return slices.DeleteFunc(pods, func(pod corev1.Pod) bool {
		n := runnerpod.AttemptOf(&pod)
		return n <= r.done || r.o.attempt > 0 && n != r.o.attempt
	}), err
}

// readPods prints the logs of pods, and returns whether they were complete.
func (r *logReader) readPods(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	pods, err := r.unread(ctx, run)
	if err != nil {
		return false, err
	}
	missing, err := r.readMissing(ctx, run, pods)
	if err != nil {
		return false, err
	}
	if len(pods) == 0 && r.o.follow && !isFinished(run) {
		r.sayWithoutPod(run)
	}
	for i := range pods {
		if err := r.printMissing(&missing, runnerpod.AttemptOf(&pods[i])); err != nil {
			return false, err
		}
		last := i == len(pods)-1
		complete, err := r.readPod(ctx, &pods[i], isFinished(run))
		switch {
		case err != nil && !last && isNodeError(err):
			r.say("The log of pod " + pods[i].Name + " is left out: " + explain(err))
		case err != nil:
			return false, err
		case last && !complete:
			return false, nil
		}
		r.done = runnerpod.AttemptOf(&pods[i])
		r.known[r.done] = true
	}
	return true, r.printMissing(&missing, math.MaxInt)
}

// sayWithoutPod prints what a Run waits for. Its requests are in the log that was read.
func (r *logReader) sayWithoutPod(run *v1alpha1.Run) {
	if r.opened && asksUsers(reason(run)) {
		r.sayWaiting("Run " + run.Name + " waits for a Decision, and continues in a new pod")
		return
	}
	r.sayWaiting("Waiting for a pod of Run " + run.Name + ": " + briefMessage(run))
}

// isNodeError reports whether the API server did not reach the kubelet of a pod. The cluster node of an
// earlier attempt may not come back.
func isNodeError(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code == http.StatusInternalServerError
}

// readPod prints the log of a pod, and reports whether nothing more can follow. The end of a stream is not the end of
// the log if the runner had not ended before.
func (r *logReader) readPod(ctx context.Context, pod *corev1.Pod, runFinished bool) (bool, error) {
	ended := runFinished || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	stream, err := r.pods.openLog(ctx, pod, r.logOptions(pod))
	if err != nil {
		deleted, err := r.notOpened(ctx, pod, err)
		return deleted || ended && err == nil, err
	}
	defer func() { _ = stream.Close() }()
	r.opened, r.reading = true, pod.Name
	r.known[runnerpod.AttemptOf(pod)] = true
	_, err = io.Copy(r.printer, stream)
	if err == nil && ended {
		err = r.printer.EndLog()
	} else {
		r.printer.Reconnect()
	}
	if err != nil && (!r.o.follow || ctx.Err() != nil || r.printer.Err() != nil) {
		return false, fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	return err == nil && ended, nil
}

// notOpened reports whether a pod was deleted, after its log could not be opened. If the pod has not started, it prints
// that. The kubelet may not know a pod yet that was just scheduled to its node.
func (r *logReader) notOpened(ctx context.Context, pod *corev1.Pod, reason error) (bool, error) {
	switch {
	case apierrors.IsBadRequest(reason):
		why := reason.Error()
		if line := r.pods.lastStartLine(ctx, pod); line != "" {
			why = "container " + startingContainer(pod) + " says: " + line
		}
		r.sayWaiting("Waiting for pod " + pod.Name + " to start: " + why)
		return false, nil
	case !apierrors.IsNotFound(reason):
		return false, reason
	}
	var now corev1.Pod
	err := r.client.Get(ctx, client.ObjectKeyFromObject(pod), &now)
	switch {
	case apierrors.IsNotFound(err), err == nil && now.UID != pod.UID:
		return true, nil
	case err == nil && now.Status.Phase == corev1.PodPending:
		r.sayWaiting("Waiting for pod " + pod.Name + " to start")
	}
	return false, err
}

// logOptions reads a log again from the second of the last event that was printed.
func (r *logReader) logOptions(pod *corev1.Pod) *corev1.PodLogOptions {
	options := &corev1.PodLogOptions{Container: runnerContainer, Follow: r.o.follow}
	if last := r.printer.LastTime(); r.reading == pod.Name && !last.IsZero() {
		since := metav1.NewTime(last)
		options.SinceTime = &since
	}
	return options
}

// end prints how the Run ended, if the logs do not show it.
func (r *logReader) end(ctx context.Context, run *v1alpha1.Run) error {
	if !r.opened && r.o.attempt > 0 && !isStored(run) {
		return fmt.Errorf("there is no log of attempt %d of Run %s: its pod was deleted, or has not started", r.o.attempt, run.Name)
	}
	r.sayDeleted(run)
	if !isFinished(run) {
		r.sayUnopened(run)
		return nil
	}
	if !r.opened {
		if err := r.readDeleted(ctx, run); err != nil {
			return err
		}
	}
	if r.saysEnd && reason(run) != v1alpha1.ReasonFinished {
		r.say("Run " + run.Name + " ended: " + reason(run) + ": " + message(run))
	}
	return nil
}

// sayUnopened prints that no log of an active Run was read.
func (r *logReader) sayUnopened(run *v1alpha1.Run) {
	if r.opened {
		return
	}
	when := " has no log yet: "
	if len(r.known) > 0 {
		when = " has no pod now: "
	}
	r.sayWaiting("Run " + run.Name + when + briefMessage(run) + ". To wait for it, use -f")
}

// sayDeleted names the attempts whose logs were not read, if others were. The log of the current attempt may still
// follow.
func (r *logReader) sayDeleted(run *v1alpha1.Run) {
	if !r.opened || r.o.attempt > 0 || run.Status.Attempt == nil {
		return
	}
	var deleted []string
	for n := 1; n <= int(run.Status.Attempt.Number); n++ {
		isCurrent := n == int(run.Status.Attempt.Number) && !isFinished(run)
		if !r.known[n] && !isCurrent {
			deleted = append(deleted, strconv.Itoa(n))
		}
	}
	if len(deleted) > 0 {
		r.say("Run " + run.Name + " has no logs of these attempts: " + strings.Join(deleted, ", ") + ". Their pods were deleted, or never started. A pod that ends by itself stays for retention.pod of the Agent")
	}
}

// sayWaiting prints a message about a wait, unless it was the last one.
func (r *logReader) sayWaiting(what string) {
	if r.waiting != what {
		r.waiting = what
		r.say(what)
	}
}

func (r *logReader) say(text string) {
	fmt.Fprintln(r.err, r.prefix+untrusted.Line(text, 1100))
}

// pause waits before logs -f looks again.
func (f *Factory) pause(ctx context.Context) error {
	if f.wait != nil {
		return f.wait(ctx)
	}
	timer := time.NewTimer(f.Interval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func isFinished(run *v1alpha1.Run) bool {
	return meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionFinished)
}
