package cli

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func newWhy(f *Factory) *cobra.Command {
	return &cobra.Command{
		Use:   "why RUN",
		Short: "Explain the state of a Run: its message, requests, pods and events",
		Args:  arguments(1, 1),
		RunE:  func(c *cobra.Command, args []string) error { return explainer{f}.why(c.Context(), args[0]) },
	}
}

// An explainer prints what there is to know about the state of a Run.
type explainer struct{ *Factory }

func (e explainer) why(ctx context.Context, name string) error {
	c, err := e.Client()
	if err != nil {
		return err
	}
	run, err := e.findRun(ctx, c, name)
	if err != nil {
		return err
	}
	e.printState(run)
	for _, r := range openRequests(run) {
		e.showRequest(e.Out, run, &r)
	}
	e.printPods(ctx, c, run)
	e.printEvents(ctx, c, run)
	return nil
}

func (e explainer) printState(run *v1alpha1.Run) {
	p := progressOf(run)
	fmt.Fprintf(e.Out, "Run %s/%s:\n", run.Namespace, run.Name)
	field(e.Out, "Target", target(run))
	field(e.Out, "State", reason(run))
	field(e.Out, "Age", e.since(run.CreationTimestamp))
	field(e.Out, "Attempts", fmt.Sprintf("%d failed, %d lost to infrastructure", run.Status.Failures, run.Status.Disruptions))
	field(e.Out, "Usage", strings.TrimSuffix(fmt.Sprintf("%d steps, %d tokens, %s", p.Counts.Steps, p.Usage.TotalTokens, p.Usage.Cost), ", "))
	if p.Step != nil {
		field(e.Out, "Step", fmt.Sprintf("%d, %s %s, for %s", p.Step.Number, p.Step.Kind, p.Step.Name, e.since(timeOf(p.Step.StartedAt))))
	}
	block(e.Out, "Message", message(run))
	if p.Result != nil {
		block(e.Out, "Warning", p.Result.Warning)
		block(e.Out, "Result", p.Result.Text)
	}
}

// printPods prints the pods of all attempts that still exist. A user may read Runs without
// reading pods: then it says so and goes on.
func (e explainer) printPods(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	var pods corev1.PodList
	err := c.List(ctx, &pods, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelRun: run.Name})
	if err != nil {
		fmt.Fprintln(e.Err, "Pods are not shown: "+explain(err))
		return
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		fmt.Fprintf(e.Out, "Pod %s:\n", pod.Name)
		field(e.Out, "Phase", string(pod.Status.Phase))
		field(e.Out, "Reason", pod.Status.Reason)
		block(e.Out, "Message", pod.Status.Message)
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			field(e.Out, "Container", s.Name+" "+containerState(s.State))
		}
	}
}

func containerState(s corev1.ContainerState) string {
	switch {
	case s.Waiting != nil:
		return "waits: " + s.Waiting.Reason + " " + s.Waiting.Message
	case s.Terminated != nil:
		return "exited with code " + strconv.Itoa(int(s.Terminated.ExitCode)) + ": " + s.Terminated.Reason
	case s.Running != nil:
		return "runs"
	}
	return "has no state yet"
}

// printEvents prints the events of the Run, the oldest first.
func (e explainer) printEvents(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	var events corev1.EventList
	err := c.List(ctx, &events, client.InNamespace(run.Namespace), client.MatchingFields{"involvedObject.uid": string(run.UID)})
	if err != nil {
		fmt.Fprintln(e.Err, "Events are not shown: "+explain(err))
		return
	}
	if len(events.Items) == 0 {
		return
	}
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return seen(a).Compare(seen(b).Time) })
	fmt.Fprintln(e.Out, "Events:")
	t := newTable(e.Out, "AGE", "TYPE", "REASON", "MESSAGE")
	for i := range events.Items {
		e := &events.Items[i]
		t.row(e.since(seen(*e)), e.Type, e.Reason, e.Message)
	}
	_ = t.print()
}

// seen is when an event was seen last.
func seen(e corev1.Event) metav1.Time {
	switch {
	case e.Series != nil:
		return metav1.NewTime(e.Series.LastObservedTime.Time)
	case !e.LastTimestamp.IsZero():
		return e.LastTimestamp
	case !e.EventTime.IsZero():
		return metav1.NewTime(e.EventTime.Time)
	}
	return e.CreationTimestamp
}
