// Package otlp sends spans and histograms to an OpenTelemetry collector: OTLP in protobuf over HTTP. Operator
// and runner use it.
//
// Identifiers are derived from the UIDs of Runs, so that a span can name a parent that another
// process sends, and attempts of a Run are in one trace. The package is smaller than the SDK of
// OpenTelemetry, whose exporter imports gRPC.
package otlp
