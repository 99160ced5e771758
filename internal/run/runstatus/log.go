package runstatus

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp/semconv"
)

// The operator logs one line for each attempt, each reason to wait or retry, and the end of a Run. The
// logger of a reconcile adds the namespace and the name. Messages are not logged: models and
// users write parts of them, and the Run has them.

// logWait logs that a Run began to wait.
func logWait(ctx context.Context, reason string, run *v1alpha1.Run) {
	runLog(ctx, run).Info("Run waits", "reason", reason)
}

// logEnd logs that a Run ended.
func logEnd(ctx context.Context, reason string, run *v1alpha1.Run) {
	l := runLog(ctx, run).WithValues("reason", reason, "failures", run.Status.Failures, "disruptions", run.Status.Disruptions)
	if end := run.Status.CompletionTime; end != nil {
		l = l.WithValues("duration", end.Sub(run.CreationTimestamp.Time).Round(time.Second).String())
	}
	if p := run.Status.Progress; p != nil {
		l = l.WithValues("steps", p.Counts.Steps, "tokens", p.Usage.TotalTokens)
		if p.Usage.CostMicroUSD != nil {
			l = l.WithValues("costUSD", float64(*p.Usage.CostMicroUSD)/1e6)
		}
	}
	l.Info("Run ended")
}

// logAttempt logs a started attempt, and the outcome of the one before.
func logAttempt(ctx context.Context, before v1alpha1.RunStatus, run *v1alpha1.Run) {
	after := run.Status.Attempt
	if after == nil || before.Attempt != nil && before.Attempt.Number == after.Number {
		return
	}
	l := runLog(ctx, run).WithValues("attempt", after.Number, "pod", after.Pod)
	if before.Attempt != nil {
		l = l.WithValues("failures", run.Status.Failures, "disruptions", run.Status.Disruptions)
	}
	l.Info("Attempt started")
}

func runLog(ctx context.Context, run *v1alpha1.Run) logr.Logger {
	l := log.FromContext(ctx)
	if run.Spec.Workflow != "" {
		return l.WithValues("workflow", run.Spec.Workflow)
	}
	return l.WithValues("agent", run.Spec.Agent)
}

// Spans are sent to a collector.
type Spans interface{ Export(span otlp.Span) }

// RootUID returns the UID of the topmost ancestor of a Run, which may be the Run itself. For a child Run that was
// created before there were traces, it is the parent.
func RootUID(run *v1alpha1.Run) string {
	parent := parentUID(run)
	if parent == "" {
		return string(run.UID)
	}
	return cmp.Or(run.Annotations[v1alpha1.AnnotationRootRun], parent)
}

// parentUID returns the UID of the parent of a Run, or an empty UID.
func parentUID(run *v1alpha1.Run) string {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.Kind != "Run" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return ""
	}
	return string(owner.UID)
}

// spanOf returns the span of a Run that ended. Runners send the spans below it.
func spanOf(run *v1alpha1.Run, reason string) otlp.Span {
	span := otlp.Span{
		Trace: otlp.TraceOf(RootUID(run)), ID: otlp.SpanOf(string(run.UID)), Name: semconv.OperationAgent + " " + run.Spec.Agent,
		Start: run.CreationTimestamp.Time, Failed: succeeded(run.Status).Status == metav1.ConditionFalse,
	}
	operation := semconv.OperationAgent
	if run.Spec.Workflow != "" {
		operation = semconv.OperationWorkflow
		span.Name = operation + " " + run.Spec.Workflow
	}
	if parent := parentUID(run); parent != "" {
		span.Parent = otlp.SpanOf(parent)
	}
	if end := run.Status.CompletionTime; end != nil {
		span.End = end.Time
	}
	span.Attributes = []otlp.Attribute{
		{Key: semconv.OperationName, Value: operation},
		{Key: semconv.ConversationID, Value: string(run.UID)},
		{Key: semconv.Namespace, Value: run.Namespace},
		{Key: semconv.Run, Value: run.Name},
		{Key: semconv.Reason, Value: reason},
	}
	if run.Spec.Agent != "" {
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: semconv.AgentName, Value: run.Spec.Agent})
	} else {
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: semconv.WorkflowName, Value: run.Spec.Workflow})
	}
	if span.Failed {
		span.Attributes = append(span.Attributes, otlp.Attribute{Key: semconv.ErrorType, Value: reason})
	}
	if p := run.Status.Progress; p != nil {
		span.Attributes = append(span.Attributes,
			otlp.Attribute{Key: semconv.InputTokens, Value: p.Usage.InputTokens},
			otlp.Attribute{Key: semconv.OutputTokens, Value: p.Usage.OutputTokens})
		if p.Usage.CostMicroUSD != nil {
			span.Attributes = append(span.Attributes, otlp.Attribute{Key: semconv.CostUSD, Value: float64(*p.Usage.CostMicroUSD) / 1e6})
		}
	}
	return span
}
