// Package telemetry turns the events of a Run into spans by the conventions of OpenTelemetry for
// generative AI, and sends them with internal/shared/otlp. It reads events like any other listener: the
// engine does not know it, and nothing waits for it.
//
// Package semconv has the names of all spans and attributes.
package telemetry
