package telemetry

import (
	"cmp"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/otlp"
	"github.com/deckhand-dev/deckhand/internal/shared/otlp/semconv"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The histograms of the conventions, with the buckets that they name.
var (
	tokenUsage = &otlp.Histogram{
		Name: semconv.TokenUsage, Unit: "{token}", Description: "Tokens of model calls, by type.",
		Bounds: []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864},
	}
	operationDuration = &otlp.Histogram{
		Name: semconv.OperationDuration, Unit: "s", Description: "Durations of model calls.",
		Bounds: []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92},
	}
)

// measure counts a model call in the histograms, if the task wants them. Their attributes come from
// the configuration of the Run, so their combinations are few.
func (t *Tracer) measure(s step.Step) {
	if !t.options.Task.Traces.Metrics {
		return
	}
	model := t.models[s.Model]
	call := []otlp.Attribute{
		{Key: semconv.OperationName, Value: semconv.OperationChat},
		{Key: semconv.ProviderName, Value: providerOf(model)},
		{Key: semconv.RequestModel, Value: t.text(cmp.Or(model.Model, s.Model), maxText)},
		{Key: semconv.AgentName, Value: t.text(cmp.Or(s.Scope.Agent, t.options.Snapshot.Agent.Name), maxText)},
	}
	t.exporter.Record(operationDuration, s.Duration.Seconds(), call...)
	t.exporter.Record(tokenUsage, float64(s.Usage.InputTokens), append(slices.Clone(call), otlp.Attribute{Key: semconv.TokenType, Value: "input"})...)
	t.exporter.Record(tokenUsage, float64(s.Usage.OutputTokens), append(slices.Clone(call), otlp.Attribute{Key: semconv.TokenType, Value: "output"})...)
}

// providers are the names that the conventions have for providers; others keep theirs, in lower
// case.
var providers = map[string]string{"Azure": "azure.ai.openai", "Bedrock": "aws.bedrock", "Kimi": "moonshot_ai"}

// providerOf returns the name that the conventions have for the provider of a model.
func providerOf(m task.Model) string {
	return cmp.Or(providers[m.Provider], strings.ToLower(m.Provider))
}
