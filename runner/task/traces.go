package task

// Traces are where a runner sends its spans and histograms.
type Traces struct {
	// Endpoint is the base URL of a collector that accepts OTLP over HTTP.
	Endpoint string `json:"endpoint"`
	// Content adds messages, arguments and results, without secrets.
	Content bool `json:"content,omitempty"`
	// Metrics adds histograms of model calls: their tokens and durations.
	Metrics bool `json:"metrics,omitempty"`
	// Root is the UID of the Run whose trace this is; empty: the Run's own.
	Root string `json:"root,omitempty"`
}
