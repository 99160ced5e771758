package runstatus

import (
	"cmp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp/semconv"
)

// Spans are sent to a collector.
type Spans interface{ Export(span otlp.Span) }

// RootUID returns the UID of the Run without a parent to which a Run belongs, which may be itself.
// A child Run that was created before there were traces belongs to its parent.
func RootUID(run *v1alpha1.Run) string {
	parent := parentUID(run)
	if parent == "" {
		return string(run.UID)
	}
	return cmp.Or(run.Annotations[v1alpha1.AnnotationRootRun], parent)
}

// parentUID returns the UID of the Run that a Run is a part of; empty: there is none.
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
