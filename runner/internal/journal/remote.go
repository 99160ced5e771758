package journal

// A Remote is an endpoint outside of the pod that a tool was called at, as its
// owner configured it.
type Remote struct {
	// Name is whose endpoint it is, such as "toolset weather".
	Name string `json:"name"`
	// Field is what in the configuration names it.
	Field string `json:"field,omitempty"`
	// Unreachable says why it could not be reached; empty: it was reached.
	Unreachable string `json:"unreachable,omitempty"`
}
