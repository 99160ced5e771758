// Package facts has what only the runner's own tools say of themselves. Other modules can copy
// it with a tool, and neither make nor change it.
package facts

// Facts are what the runner knows of a tool of its own, beside its Spec.
type Facts struct {
	// Foreign means that Input is the schema of a server, which checks what its formats mean
	// itself; see [schema.Validator.WithoutFormats].
	Foreign bool
	// Endpoint is where the calls go outside of the pod, if the configuration names it.
	Endpoint Endpoint
	// Origin is the Toolset that the tool comes from; its zero value: none.
	Origin Origin
	// SchemaChanges say how Input differs from the schema that the owner of the tool wrote,
	// which model providers would refuse; empty: not at all.
	SchemaChanges []string
	// Ends marks Finish and Reject: a successful call is the last of the Run.
	Ends bool
}

// An Endpoint is where the calls of a tool go, as its owner configured it.
type Endpoint struct {
	// Name is its owner, such as "toolset weather".
	Name string
	// Field is what in the configuration names it, such as "spec.requests.baseURL of Toolset
	// weather".
	Field string
}

// An Origin names a tool as its Toolset does, in allow and deny.
type Origin struct {
	Toolset, Tool string
}

// Internal has Facts. A copy of a tool keeps it; only [Facts.Internal] makes another.
type Internal struct{ facts Facts }

// Internal returns the facts for a tool.
func (f Facts) Internal() Internal { return Internal{f} }

// Facts returns the facts of a tool.
func (i Internal) Facts() Facts { return i.facts }
