package task

// Traces are where a runner sends its spans.
type Traces struct {
	// Endpoint is the base URL of a collector that accepts OTLP over HTTP.
	Endpoint string `json:"endpoint"`
	// Content adds messages, arguments and results, without secrets.
	Content bool `json:"content,omitempty"`
	// Root is the UID of the Run whose trace this is; empty: the Run's own.
	Root string `json:"root,omitempty"`
}
