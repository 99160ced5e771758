package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Toolset provides tools from outside: the tools of an MCP server, or requests to an HTTP
// API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tset,categories=deckhand
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48 && !self.metadata.name.contains('.')",message="the name of a Toolset is at most 48 lower-case letters, digits and -: it begins the names of its tools"
type Toolset struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is where the tools come from.
	// +required
	Spec ToolsetSpec `json:"spec"`

	// status is what the operator found.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status ToolsetStatus `json:"status,omitempty"`
}

// ToolsetSpec is where tools come from. The model calls them
// <toolset>__<tool>.
//
// +kubebuilder:validation:XValidation:rule="[has(self.stdio), has(self.http), has(self.requests)].exists_one(x, x)",message="a Toolset has exactly one of stdio (an MCP server as a program), http (an MCP server by URL) and requests (to an HTTP API)"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || (!has(self.readOnly) && !has(self.idempotent) && !has(self.trustHints) && !has(self.offer))",message="offer, readOnly, idempotent and trustHints are for MCP servers: each request says its own effect"
type ToolsetSpec struct {
	// description says, for people, what it is for.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// stdio is an MCP server that is started as a program.
	// +optional
	Stdio *StdioServer `json:"stdio,omitempty"`

	// http is an MCP server that is reached by URL (streamable HTTP).
	// +optional
	HTTP *HTTPServer `json:"http,omitempty"`

	// requests are tools that each send one request to an HTTP API.
	// +optional
	Requests *Requests `json:"requests,omitempty"`

	// offer selects what of an MCP server becomes tools: Tools, Resources (a tool that lists
	// and a tool that reads) and Prompts (the same). Default: Tools.
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Tools;Resources;Prompts
	// +optional
	Offer []Offer `json:"offer,omitempty"`

	// readOnly names tools of the server that change nothing: a call that a crash
	// interrupted is repeated. Default: none; an interrupted call is reported to the model
	// and never repeated.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	ReadOnly []string `json:"readOnly,omitempty"`

	// idempotent names tools of the server that may be called twice with the same
	// effect as once.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Idempotent []string `json:"idempotent,omitempty"`

	// trustHints believes what the server itself says of the effects of its tools.
	// Default false.
	// +optional
	TrustHints bool `json:"trustHints,omitempty"`

	// timeout bounds one call. Default 120s, at most 6h.
	// +kubebuilder:validation:XValidation:rule="!string(self).matches('^([0-9]{1,7}(h|m|s))+$') || (duration(string(self)) > duration('0s') && duration(string(self)) <= duration('6h'))",message="must be more than 0s and at most 6h"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// required says whether a Run needs the server. If false, a Run starts and continues
	// while the server cannot be reached, and the model is informed. If true, the attempt
	// ends with reason ToolUnavailable and is retried. Default true.
	// +kubebuilder:default=true
	// +optional
	Required *bool `json:"required,omitempty"`
}

// StdioServer is an MCP server that is started as a program.
//
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') == 'Container' || !has(self.env) || !self.env.exists(e, has(e.valueSecretRef))",message="a server with Secrets runs in its own container, because commands of the agent could read them in the sandbox: remove runIn, or valueSecretRef"
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') != 'Container' || has(self.container)",message="a server that does not run in the sandbox needs an image: write container: {image: ghcr.io/acme/mcp:1}, or runIn: Sandbox"
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') == 'Container' || !has(self.container)",message="a server with runIn: Sandbox runs in the container of the agent's commands, with sandbox.image and the workspace: remove container"
type StdioServer struct {
	// command is the program and its arguments.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +required
	Command []string `json:"command"`

	// runIn is where the program runs. Container: in its own container of the pod.
	// Sandbox: in the container of the agent's commands, with their files and without
	// Secrets. Default Container.
	// +kubebuilder:validation:Enum=Container;Sandbox
	// +optional
	RunIn RunIn `json:"runIn,omitempty"`

	// container is the server's own container. Required unless runIn is Sandbox.
	// +optional
	Container *ServerContainer `json:"container,omitempty"`

	// env are environment variables of the server.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Env []ServerVariable `json:"env,omitempty"`
}

// ServerContainer is the container of an MCP server.
type ServerContainer struct {
	// image holds the program. If the image cannot be pulled, a Run ends with reason
	// ImagePullFailed.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Image string `json:"image"`

	// workspace is ReadOnly to mount the workspace in the container, or None.
	// Default None.
	// +kubebuilder:validation:Enum=None;ReadOnly
	// +optional
	Workspace WorkspaceAccess `json:"workspace,omitempty"`
}

// ServerVariable is a variable of an MCP server.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.valueSecretRef)",message="a variable has either value or valueSecretRef: write one of the two"
type ServerVariable struct {
	// name of the variable.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be a name of a variable: letters, digits and _"
	// +required
	Name string `json:"name"`

	// value is what it is set to.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value *string `json:"value,omitempty"`

	// valueSecretRef names the key of a Secret that holds the value. While the
	// Secret or the key is missing, a Run waits with reason SecretMissing.
	// +optional
	ValueSecretRef *SecretKeyRef `json:"valueSecretRef,omitempty"`
}

// HTTPServer is an MCP server that is reached by URL.
type HTTPServer struct {
	// url of the server. The runner calls it, not the sandbox.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/mcp"
	// +required
	URL string `json:"url"`

	// headers are sent with every request. Do not put a secret here: use auth.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="each header may be listed once, in upper or lower case"
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// auth says how requests authenticate. Default: not at all.
	// +optional
	Auth *Auth `json:"auth,omitempty"`
}

// Offer is what of an MCP server becomes tools.
type Offer string

// What of an MCP server becomes tools.
const (
	OfferTools     Offer = "Tools"
	OfferResources Offer = "Resources"
	OfferPrompts   Offer = "Prompts"
)

// RunIn is where an MCP server runs.
type RunIn string

// Where an MCP server runs.
const (
	RunInContainer RunIn = "Container"
	RunInSandbox   RunIn = "Sandbox"
)

// WorkspaceAccess is what a container sees of the workspace.
type WorkspaceAccess string

// What a container sees of the workspace.
const (
	WorkspaceAccessNone     WorkspaceAccess = "None"
	WorkspaceAccessReadOnly WorkspaceAccess = "ReadOnly"
)

// ToolsetStatus is what the operator found.
type ToolsetStatus struct {
	// observedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions holds Ready.
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ToolsetList is a list of Toolsets.
//
// +kubebuilder:object:root=true
type ToolsetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []Toolset `json:"items"`
}
