package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
)

// A logReader reads the logs of the pods of a Run, attempt by attempt.
type logReader struct {
	f       *Factory
	o       logsOptions
	client  client.Client
	open    logOpener
	key     client.ObjectKey
	printer *conversation.Printer
	// done is the last attempt whose log is read to its end.
	done int
	// reading is the pod of which the log was opened last.
	reading string
	// opened is whether a log was read.
	opened bool
	// waiting is what was last said to be waited for.
	waiting string
}

func (r *logReader) read(ctx context.Context) error {
	for {
		run, err := r.run(ctx)
		if err != nil {
			return err
		}
		complete, err := r.readPods(ctx, run)
		switch {
		case err != nil:
			return err
		case !r.o.follow || complete && (isFinished(run) || r.o.attempt > 0 && r.done >= r.o.attempt):
			return r.end(run)
		}
		if err := r.f.pause(ctx); err != nil {
			return err
		}
	}
}

// run reads the Run. It is read before its pods, so that no pod of a Run that has ended is
// missed.
func (r *logReader) run(ctx context.Context) (*v1alpha1.Run, error) {
	run := &v1alpha1.Run{}
	if err := r.client.Get(ctx, r.key, run); err != nil {
		return nil, err
	}
	if run.Spec.Workflow != "" {
		return nil, fmt.Errorf("Run %s runs Workflow %s, so it has no pod. Name one of its child Runs: kubectl deckhand list -l %s=%s", run.Name, run.Spec.Workflow, v1alpha1.LabelWorkflowRun, run.Name) //nolint:staticcheck // it begins with the kind
	}
	return run, nil
}

// pods returns the pods of the attempts that are not yet read, oldest first.
func (r *logReader) pods(ctx context.Context, run *v1alpha1.Run) ([]corev1.Pod, error) {
	var list corev1.PodList
	if err := r.client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelRun: run.Name}); err != nil {
		return nil, err
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		n := attemptOf(&pod)
		return !metav1.IsControlledBy(&pod, run) || n <= r.done || r.o.attempt > 0 && n != r.o.attempt
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(attemptOf(&a), attemptOf(&b)) })
	return pods, nil
}

// readPods prints the logs of pods, and returns whether they were complete.
func (r *logReader) readPods(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	pods, err := r.pods(ctx, run)
	if err != nil {
		return false, err
	}
	if len(pods) == 0 && r.o.follow && !isFinished(run) {
		r.sayWaiting("Waiting for a pod of Run " + run.Name + ": " + message(run))
	}
	for i := range pods {
		complete, err := r.readPod(ctx, &pods[i], isFinished(run))
		if err != nil {
			return false, err
		}
		if last := i == len(pods)-1; last && !complete {
			return false, nil
		}
		r.done = attemptOf(&pods[i])
	}
	return true, nil
}

// readPod prints the log of a pod, and returns whether nothing more can follow. The end of a
// stream is not the end of the log if the runner had not ended before.
func (r *logReader) readPod(ctx context.Context, pod *corev1.Pod, runFinished bool) (bool, error) {
	ended := runFinished || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	stream, err := r.open(ctx, pod.Namespace, pod.Name, r.logOptions(pod))
	switch {
	case apierrors.IsBadRequest(err): // the container has not started
		r.sayWaiting("Waiting for pod " + pod.Name + " to start: " + err.Error())
		return ended, nil
	case apierrors.IsNotFound(err): // the pod was deleted meanwhile
		return true, nil
	case err != nil:
		return false, err
	}
	defer func() { _ = stream.Close() }()
	r.opened, r.reading = true, pod.Name
	_, err = io.Copy(r.printer, stream)
	if err != nil || !ended {
		r.printer.Reconnect()
	}
	if err != nil && (!r.o.follow || ctx.Err() != nil || r.printer.Err() != nil) {
		return false, fmt.Errorf("reading the log of pod %s: %w", pod.Name, err)
	}
	return err == nil && ended, nil
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

// end says what the logs do not.
func (r *logReader) end(run *v1alpha1.Run) error {
	if !r.opened && r.o.attempt > 0 {
		return fmt.Errorf("there is no log of attempt %d of Run %s: its pod was deleted, or has not started", r.o.attempt, run.Name)
	}
	if !isFinished(run) {
		if !r.opened {
			r.sayWaiting("Run " + run.Name + " has no log yet: " + message(run) + ". To wait for it, use -f")
		}
		return nil
	}
	if !r.opened {
		fmt.Fprintf(r.f.Err, "The pods of Run %s and their logs were deleted. To keep them longer, set podRetention of the Agent. The result:\n", run.Name)
		r.printResult(run)
	}
	if reason(run) != v1alpha1.ReasonFinished {
		fmt.Fprintf(r.f.Err, "Run %s ended: %s: %s\n", run.Name, reason(run), untrusted.Line(message(run), 1024))
	}
	return nil
}

func (r *logReader) printResult(run *v1alpha1.Run) {
	if result := progressOf(run).Result; result != nil {
		for _, text := range []string{result.Text, result.Output} {
			if text != "" {
				fmt.Fprintln(r.f.Out, untrusted.Text(text))
			}
		}
	}
}

// sayWaiting says once what is waited for.
func (r *logReader) sayWaiting(what string) {
	if r.waiting != what {
		r.waiting = what
		fmt.Fprintln(r.f.Err, untrusted.Line(what, 1024))
	}
}

// pause waits before logs -f looks again.
func (f *Factory) pause(ctx context.Context) error {
	if f.wait != nil {
		return f.wait(ctx)
	}
	timer := time.NewTimer(pollInterval)
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

// attemptOf is the number of the attempt of a pod, 0 if it has none.
func attemptOf(pod *corev1.Pod) int {
	n, _ := strconv.Atoi(pod.Labels[v1alpha1.LabelAttempt])
	return n
}
