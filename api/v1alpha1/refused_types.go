package v1alpha1

// Refused is what the agent tried and was refused, in all attempts: connections of commands in
// the sandbox, and tool calls. The numbers are exact, except if a runner is killed: what it had
// not reported yet, at most 10 seconds, is missing, and if it restarts in the same pod, what it
// counted in that pod.
type Refused struct {
	// connections is the number of connections that were refused, also those to hosts that are
	// not listed in hosts.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Connections int64 `json:"connections,omitempty"`
	// hosts are the first 20 hosts and ports that were refused, in the order of their first
	// connection. Commands choose these names: do not trust them.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=20
	// +optional
	Hosts []RefusedHost `json:"hosts,omitempty"`
	// toolCalls is the number of tool calls that were denied, also those of tools that are not
	// listed in tools.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ToolCalls int64 `json:"toolCalls,omitempty"`
	// tools are the first 8 tools whose calls were denied, for each of by, in the order of their
	// first denied call.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Tools []DeniedTool `json:"tools,omitempty"`
}

// DeniedTool is a tool whose calls were denied.
type DeniedTool struct {
	// name is the name of the tool, cut at 64 bytes.
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 64",message="must be at most 64 bytes"
	// +required
	Name string `json:"name"`
	// by is what denied the calls: Policy (a rule of spec.policy of the Agent, or of an Agent
	// above it), Approver (a user), Timeout (no user decided in time, or no user can be asked) or
	// Hook.
	// +kubebuilder:validation:Enum=Policy;Approver;Timeout;Hook
	// +optional
	By DeniedBy `json:"by,omitempty"`
	// count is the number of calls that were denied.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Count int64 `json:"count,omitempty"`
	// firstID is the id of the first denied call. It is empty if it is longer than 32 bytes, and if
	// an older runner reports.
	// +optional
	FirstID StepID `json:"firstID,omitempty"`
}

// DeniedBy is what denied a tool call.
type DeniedBy string

// What denies tool calls.
const (
	DeniedByPolicy   DeniedBy = "Policy"
	DeniedByApprover DeniedBy = "Approver"
	DeniedByTimeout  DeniedBy = "Timeout"
	DeniedByHook     DeniedBy = "Hook"
)

// RefusedHost is a host and port to which connections were refused.
type RefusedHost struct {
	// host is the name or address of the host in lower case.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="size(bytes(self)) <= 253",message="must be at most 253 bytes"
	// +required
	Host string `json:"host"`
	// port is the port.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +required
	Port int32 `json:"port"`
	// reason is NotListed if no entry of sandbox.egress.hosts of the Agent allows the host and
	// port, or NotPublic if one does but the name leads to no public address.
	// +kubebuilder:validation:Enum=NotListed;NotPublic
	// +optional
	Reason RefusedReason `json:"reason,omitempty"`
	// count is the number of connections that were refused.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Count int64 `json:"count,omitempty"`
	// firstID is the id of the turn or call that had begun last when the first was refused. It is
	// empty if it is longer than 32 bytes, and if an older runner reports.
	// +optional
	FirstID StepID `json:"firstID,omitempty"`
}

// RefusedReason is why a connection was refused.
type RefusedReason string

// The reasons for which a connection is refused.
const (
	RefusedNotListed RefusedReason = "NotListed"
	RefusedNotPublic RefusedReason = "NotPublic"
)
