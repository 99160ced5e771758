package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func newWhy(f *Factory) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "why RUN | KIND/NAME",
		Short: "Explain the state of a Run: its message, requests, pods and events; or why an Agent, Model or other object is not Ready",
		Example: "  kubectl deckhand why review-x7k2p\n" +
			"  kubectl deckhand why agent/reviewer",
		Args: arguments(1, 2),
		RunE: func(c *cobra.Command, args []string) error { return explainer{f}.explain(c.Context(), args, output) },
	}
	bindOutput(c, &output, outputJSON, outputYAML)
	return c
}

// logTimeout bounds how long why reads a log, whose pod may still be active.
const logTimeout = 10 * time.Second

// An explainer prints everything about the state of a Run.
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
	e.printState(ctx, c, run)
	for _, r := range openRequests(run) {
		requests.Show(&e.Streams, e.Out, run, &r, "")
		showCommands(e.Out, run, &r)
	}
	pods := podReaderOf(e.Factory, c)
	own, podsErr := pods.list(ctx, run)
	e.printFiles(ctx, c, run)
	e.printLoggedFiles(ctx, pods, run)
	e.printDecisions(ctx, c, run)
	e.printRefused(run, readDenyingRules(ctx, pods, run, own))
	if podsErr != nil { // a user may read Runs without reading pods
		fmt.Fprintln(e.Err, "Pods are not shown: "+explain(podsErr))
	}
	e.printPods(ctx, pods, run, own)
	e.printEvents(ctx, c, run)
	return nil
}

func (e explainer) printState(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	p := progressOf(run)
	fmt.Fprintf(e.Out, "Run %s/%s:\n", run.Namespace, run.Name)
	terminal.Field(e.Out, "Target", target(run))
	terminal.Field(e.Out, "Continues", chainText(run))
	terminal.Field(e.Out, "State", reason(run))
	terminal.Field(e.Out, "Age", e.Since(run.CreationTimestamp))
	terminal.Field(e.Out, "Attempts", attempts(run))
	terminal.Field(e.Out, "Usage", strings.TrimSuffix(fmt.Sprintf("%s, %d tokens, %s", terminal.Plural(p.Counts.Steps, "step"), p.Usage.TotalTokens, p.Usage.Cost), ", "))
	terminal.Field(e.Out, "Step", e.step(run))
	e.printModelWait(ctx, c, run)
	if !requestsShowMessage(run) {
		terminal.Block(e.Out, "Message", briefMessage(run))
	}
	e.printResult(run)
}

// requestsShowMessage reports whether the printed requests have all information of the Run's message.
func requestsShowMessage(run *v1alpha1.Run) bool {
	return asksUsers(reason(run)) && len(openRequests(run)) > 0
}

// asksUsers reports whether a Run with a reason waits for a user.
func asksUsers(reason string) bool {
	return reason == v1alpha1.ReasonAwaitingAnswer || reason == v1alpha1.ReasonAwaitingApproval
}

// printModelWait prints which model an active Run waits for, and what a user can do.
func (e explainer) printModelWait(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	w := progressOf(run).ModelWait
	if w == nil || isFinished(run) {
		return
	}
	text := fmt.Sprintf("Model %s, unavailable for %s", w.Model, e.Since(w.Since))
	switch {
	case w.NextTryAt == nil:
	case w.NextTryAt.After(e.Now()):
		text += fmt.Sprintf("; next try in %s, at %s", duration.HumanDuration(w.NextTryAt.Sub(e.Now())), w.NextTryAt.UTC().Format(time.RFC3339))
		if w.Promised {
			text += ", which the provider named"
		}
	default:
		text += "; it is asked now"
	}
	terminal.Field(e.Out, "Waits for", text)
	terminal.Field(e.Out, "Cause", w.Message)
	advice := fmt.Sprintf("correct the server or Model %s (kubectl describe model %s -n %s), or add spec.fallbacks to it; for longer waits raise limits.modelOutage or limits.wait of the Agent",
		w.Model, w.Model, run.Namespace)
	if key := missingKey(ctx, c, run.Namespace, w); key != nil {
		advice = fmt.Sprintf(`if Secret %[1]s exists, add key %[2]s: kubectl patch secret %[1]s -n %[3]s --patch='{"stringData":{"%[2]s":"…"}}'; else create it: kubectl create secret generic %[1]s -n %[3]s --from-literal=%[2]s=…`,
			key.Name, key.Key, run.Namespace)
	}
	terminal.Field(e.Out, "To do", advice+". To end the Run: "+requests.Command("stop", run))
}

// missingKey returns the key of the Model for which a Run waits; nil: it waits for the server.
func missingKey(ctx context.Context, c client.Client, namespace string, w *v1alpha1.ModelWait) *v1alpha1.SecretKeyRef {
	var m v1alpha1.Model
	if err := c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: w.Model}, &m); err != nil {
		return nil // the cause names the key too
	}
	key := m.Spec.APIKeySecretRef
	if key == nil || !strings.Contains(w.Message, task.MissingKey(task.SecretKey{Secret: string(key.Name), Key: key.Key})) {
		return nil
	}
	return key
}

// attempts returns how many attempts there were, and why there was more than one; empty: it is the Run of a
// Workflow.
func attempts(run *v1alpha1.Run) string {
	status := run.Status
	switch {
	case run.Spec.Workflow != "":
		return ""
	case status.Attempt == nil:
		return "0"
	}
	var after []string
	for _, of := range []struct {
		n   int32
		why string
	}{
		{status.Failures, "a failure"},
		{status.Disruptions, "a loss to infrastructure"},
		{status.Attempt.Number - 1 - status.Failures - status.Disruptions, "a wait"},
	} {
		if of.n > 0 {
			after = append(after, fmt.Sprintf("%d after %s", of.n, of.why))
		}
	}
	text := strconv.Itoa(int(status.Attempt.Number))
	if len(after) > 0 {
		text += " (" + strings.Join(after, ", ") + ")"
	}
	return text
}

// step returns the step of the agent, current or when the Run began to wait or its pod ended.
func (e explainer) step(run *v1alpha1.Run) string {
	p := progressOf(run)
	if p.Step == nil {
		return ""
	}
	text := p.Step.Kind + " " + p.Step.Name
	if p.Step.ID != "" { // an older runner reports none
		text = string(p.Step.ID) + ", " + text
	}
	if reason(run) == v1alpha1.ReasonRunning && run.Status.Attempt != nil && p.Attempt == run.Status.Attempt.Number {
		text += ", for " + e.Since(terminal.TimeOf(p.Step.StartedAt))
	}
	return text
}

// printFiles prints until when the files of a finished Run exist.
func (e explainer) printFiles(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	if !isFinished(run) || run.Status.Attempt == nil || run.Status.Attempt.VolumeClaim == "" {
		return
	}
	var claim corev1.PersistentVolumeClaim
	err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Status.Attempt.VolumeClaim}, &claim)
	var kept keptVolume
	if err == nil {
		kept, _, err = keptUntil(ctx, c, run, &claim, e.Now())
	}
	switch {
	case apierrors.IsNotFound(err):
		terminal.Field(e.Out, "Files", "deleted with PersistentVolumeClaim "+run.Status.Attempt.VolumeClaim)
	case err != nil:
		fmt.Fprintln(e.Err, "Files are not shown: "+explain(err))
	case kept.user != "":
		terminal.Field(e.Out, "Files", "on PersistentVolumeClaim "+claim.Name+", on which Run "+kept.user+" works. To copy them: "+copyFiles(run)+howToContinue(run))
	case kept.until.IsZero():
		terminal.Field(e.Out, "Files", "on PersistentVolumeClaim "+claim.Name)
	default:
		terminal.Field(e.Out, "Files", "on PersistentVolumeClaim "+claim.Name+" until "+kept.text()+". To copy them: "+copyFiles(run)+howToContinue(run))
	}
}

// printLoggedFiles prints where the files of a finished Run without a volume are. The message of the Run names lost
// files.
func (e explainer) printLoggedFiles(ctx context.Context, pods *podReader, run *v1alpha1.Run) {
	result := progressOf(run).Result
	if !isFinished(run) || run.Status.Attempt == nil || run.Status.Attempt.VolumeClaim != "" || result == nil {
		return
	}
	if pod, err := pods.last(ctx, run); err != nil || pod == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	files, err := readLog(ctx, pods, run)
	switch {
	case err != nil && len(result.Files) > 0:
		fmt.Fprintln(e.Err, "Files are not shown: "+explain(err))
		return
	case err != nil || files.list == nil:
		return
	}
	if logged, _ := files.choose("."); len(logged) > 0 {
		terminal.Field(e.Out, "Files", fmt.Sprintf("%d in the log of pod %s until it is deleted (retention.pod of the Agent). To copy them: %s", len(logged), run.Status.Attempt.Pod, copyFiles(run)))
	}
}

// copyFiles returns the command that copies all files of a Run.
func copyFiles(run *v1alpha1.Run) string {
	return requests.CommandAbout("cp", client.ObjectKey{Namespace: run.Namespace, Name: run.Name + ":."}, "DIRECTORY")
}

// printPods prints the pods of all attempts of a Run that still exist.
func (e explainer) printPods(ctx context.Context, reader *podReader, run *v1alpha1.Run, pods []corev1.Pod) {
	for i := range pods {
		pod := &pods[i]
		fmt.Fprintf(e.Out, "Pod %s:\n", pod.Name)
		terminal.Field(e.Out, "Phase", podPhase(run, pod))
		terminal.Field(e.Out, "Reason", pod.Status.Reason)
		terminal.Block(e.Out, "Message", pod.Status.Message)
		for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
			terminal.Field(e.Out, "Container", s.Name+" "+containerState(s.State))
		}
		if line := reader.lastStartLine(ctx, pod); line != "" {
			terminal.Field(e.Out, "Last log", startingContainer(pod)+": "+line)
		}
	}
}

// podPhase returns the phase of a pod. The runner of a Run that was stopped or that reached a limit works for
// some seconds after the end of the Run.
func podPhase(run *v1alpha1.Run, pod *corev1.Pod) string {
	phase := string(pod.Status.Phase)
	switch {
	case pod.DeletionTimestamp != nil:
		phase += ", is being deleted"
	case isFinished(run) && pod.Status.Phase == corev1.PodRunning:
		phase += ", is ending, because the Run has ended"
	}
	return phase
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

// printEvents prints the events of an object, the oldest first.
func (e explainer) printEvents(ctx context.Context, c client.Client, o client.Object) {
	events := e.eventsOf(ctx, c, o)
	if len(events.Items) == 0 {
		return
	}
	fmt.Fprintln(e.Out, "Events:")
	t := newTable(e.Out, "AGE", "TYPE", "REASON", "FROM", "MESSAGE")
	for i := range events.Items {
		event := &events.Items[i]
		t.row(e.Since(seen(*event)), event.Type, event.Reason, untrusted.Line(cmp.Or(event.ReportingController, event.Source.Component), task.MaxTool), eventMessage(o, event))
	}
	_ = t.print()
}

// eventMessage returns the message of an event. A request that is printed above is not repeated.
func eventMessage(o client.Object, e *corev1.Event) string {
	text := decisions.TrimHint(e.Message)
	if run, is := o.(*v1alpha1.Run); is && asksUsers(e.Reason) && requestsShowMessage(run) && !decisions.AsksMore(e.Message, message(run)) {
		return "The request above"
	}
	return text
}

// eventsOf returns the events of an object, the oldest first.
func (e explainer) eventsOf(ctx context.Context, c client.Client, o client.Object) corev1.EventList {
	var events corev1.EventList
	err := c.List(ctx, &events, client.InNamespace(o.GetNamespace()), client.MatchingFields{"involvedObject.uid": string(o.GetUID())})
	if err != nil {
		fmt.Fprintln(e.Err, "Events are not shown: "+explain(err))
		return corev1.EventList{}
	}
	events.Items = slices.DeleteFunc(events.Items, isOfOtherGroup)
	slices.SortStableFunc(events.Items, func(a, b corev1.Event) int { return seen(a).Compare(seen(b).Time) })
	return events
}

// isOfOtherGroup reports whether an event names an object of another API group that has the UID of one of our objects.
// The admission policy deckhand-events does not restrict such an event to one line.
func isOfOtherGroup(e corev1.Event) bool {
	group, _, hasGroup := strings.Cut(e.InvolvedObject.APIVersion, "/")
	return hasGroup && group != v1alpha1.GroupVersion.Group
}

// seen returns when an event was seen last.
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
