// Package facts has what only the runner's own tools state about themselves. Other modules can copy these facts with a
// tool, but neither create nor change them.
package facts

// Facts are further properties of the runner's own tools.
type Facts struct {
	// Foreign means that Input is the schema of a server, which validates formats itself; see
	// [schema.Validator.WithoutFormats].
	Foreign bool
	// Endpoint is where calls go outside of the pod, if it is configured.
	Endpoint Endpoint
	// Origin is the Toolset that the tool comes from; zero: none.
	Origin Origin
	// SchemaChanges describe how Input differs from the schema that the owner of the tool wrote, because model
	// providers would refuse that schema; empty: it does not differ.
	SchemaChanges []string
	// Ends marks Finish and Reject: a successful call ends the Run.
	Ends bool
}

// An Endpoint is where the calls of a tool go, as users configured it.
type Endpoint struct {
	// Name names the object that has the endpoint, such as "toolset weather".
	Name string
	// Field is the field in which the endpoint is configured, such as "spec.requests.baseURL of Toolset weather".
	Field string
}

// An Origin is the name of a tool in allow and deny of its Toolset's entry.
type Origin struct {
	Toolset, Tool string
}

// Internal holds Facts. A copy of a tool keeps it; only [Facts.Internal] makes a new one.
type Internal struct{ facts Facts }

// Internal returns the facts for a tool.
func (f Facts) Internal() Internal { return Internal{f} }

// Facts returns the facts of a tool.
func (i Internal) Facts() Facts { return i.facts }
