package task

// Refused is what the agent tried and was refused: connections of commands in the sandbox, and
// tool calls.
type Refused struct {
	// Connections counts all refused connections, also those to hosts beyond the first MaxHosts.
	Connections int64 `json:"connections,omitempty"`
	// Hosts are the first hosts and ports that were refused, at most MaxHosts.
	Hosts []RefusedHost `json:"hosts,omitempty"`
	// ToolCalls counts all denied calls, also those of tools beyond the first MaxDeniedTools.
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// Tools are the first tools whose calls were denied, at most MaxDeniedTools.
	Tools []DeniedTool `json:"tools,omitempty"`
}

// DeniedTool is a tool whose calls were denied.
type DeniedTool struct {
	// Name is at most MaxTool bytes.
	Name string `json:"name"`
	// By is DeniedByPolicy, DeniedByApprover, DeniedByTimeout or DeniedByHook.
	By    string `json:"by,omitempty"`
	Count int64  `json:"count,omitempty"`
	// FirstID is the id of the first denied call, as [ShownID] returns it.
	FirstID string `json:"firstID,omitempty"`
}

// What denies tool calls.
const (
	DeniedByPolicy   = "Policy"   // a rule
	DeniedByApprover = "Approver" // a user
	DeniedByTimeout  = "Timeout"  // no user decided in time, or no user can be asked
	DeniedByHook     = "Hook"
)

// RefusedHost is a host and port to which connections were refused.
type RefusedHost struct {
	// Host is at most MaxHost bytes.
	Host string `json:"host"`
	Port int    `json:"port"`
	// Reason is RefusedNotListed or RefusedNotPublic.
	Reason string `json:"reason,omitempty"`
	Count  int64  `json:"count,omitempty"`
	// FirstID is the id of the turn or call that had begun last when the first was refused, as [ShownID]
	// returns it.
	FirstID string `json:"firstID,omitempty"`
}

// The reasons for which a connection is refused.
const (
	RefusedNotListed = "NotListed" // no entry of the Agent's list allows it
	RefusedNotPublic = "NotPublic" // the name leads to no public address
)
