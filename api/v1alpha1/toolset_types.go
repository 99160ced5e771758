package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Toolset is a group of tools from outside Deckhand: the tools of an MCP server, or requests to
// an HTTP API. An Agent uses it with the entry toolset in spec.tools. The model sees each tool
// as <toolset>__<tool>.
//
// Example:
//
//	apiVersion: deckhand.dev/v1alpha1
//	kind: Toolset
//	metadata: {name: issues}
//	spec:
//	  http: {url: "https://mcp.example.com/mcp"}
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tset,categories=deckhand
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="size(self.metadata.name) <= 48 && !self.metadata.name.contains('.')",message="metadata.name must have at most 48 lower-case letters, digits and -, because the names of its tools begin with it"
type Toolset struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the object's metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is where the tools come from. Exactly one of stdio, http and requests is required.
	// It can be changed at any time; an active Run keeps the settings with which it started.
	// +required
	Spec ToolsetSpec `json:"spec"`

	// status is the observed state of the Toolset. Only a Run finds out whether a server
	// answers.
	// +kubebuilder:default={conditions:{{type:"Ready",status:"Unknown",reason:"Pending",message:"Waiting for the operator",lastTransitionTime:"1970-01-01T00:00:00Z"}}}
	// +optional
	Status ToolsetStatus `json:"status,omitempty"`
}

// ToolsetSpec is where tools come from. The model sees each tool as <toolset>__<tool>.
//
// +kubebuilder:validation:XValidation:rule="[has(self.stdio), has(self.http), has(self.requests)].exists_one(x, x)",messageExpression="'exactly one of stdio (an MCP server as a program), http (an MCP server with a URL) and requests (an HTTP API) is required: ' + (has(self.stdio) || has(self.http) || has(self.requests) ? 'remove the others' : 'write http: {url: https://host/mcp}')"
// +kubebuilder:validation:XValidation:rule="!has(self.requests) || (!has(self.readOnly) && !has(self.idempotent) && !has(self.trustHints) && !has(self.offer))",message="offer, readOnly, idempotent and trustHints are not allowed with requests: remove them, because the method of a request determines its effect"
type ToolsetSpec struct {
	// description is what the Toolset is for, for users.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule=`!self.matches(r'[\x00-\x08\x0b-\x1f\x7f-\x9f]')`,message="must not have control characters"
	// +optional
	Description string `json:"description,omitempty"`

	// stdio is an MCP server that is started as a program in the pod of each Run.
	// +optional
	Stdio *StdioServer `json:"stdio,omitempty"`

	// http is an MCP server with a URL (Streamable HTTP).
	// +optional
	HTTP *HTTPServer `json:"http,omitempty"`

	// requests are tools that each send one request to an HTTP API.
	// +optional
	Requests *Requests `json:"requests,omitempty"`

	// offer is which parts of an MCP server become tools: Tools; Resources, as a tool that
	// lists and a tool that reads them; Prompts, in the same way. Default: Tools.
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Tools;Resources;Prompts
	// +optional
	Offer []Offer `json:"offer,omitempty"`

	// readOnly has the names of tools of the MCP server that change nothing, as the server
	// names them. If a crash interrupts a call of them, the call is repeated. An interrupted
	// call of another tool is not repeated, and the model gets a message about it. Default:
	// none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	ReadOnly []string `json:"readOnly,omitempty"`

	// idempotent has the names of tools of the MCP server that may be called twice with the
	// same effect as once. If a crash interrupts a call of them, the call is repeated. Default:
	// none.
	// +listType=set
	// +kubebuilder:validation:MaxItems=128
	// +kubebuilder:validation:items:MaxLength=128
	// +optional
	Idempotent []string `json:"idempotent,omitempty"`

	// trustHints is true to use the MCP server's own annotations (readOnlyHint, idempotentHint)
	// for tools that readOnly and idempotent do not name. Default false.
	// +optional
	TrustHints bool `json:"trustHints,omitempty"`

	// timeout is how long one call may take without an answer or, from an MCP server, a
	// progress notification, at most 6h. A call that takes longer is cancelled, and the model
	// gets an error. Default 120s.
	// +kubebuilder:validation:XValidation:rule="!self.matches('^([0-9]{1,7}(h|m|s))+$') || (duration(self) > duration('0s') && duration(self) <= duration('6h'))",message="must be more than 0s and at most 6h: write 10m, or remove it"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// required is true if a Run needs the MCP server: while the server cannot be reached, the
	// attempt ends with reason ToolUnavailable and is retried. If false, the Run works without
	// these tools, the model gets a message about it, and the message of the Run names the
	// Toolset. Default true.
	// +kubebuilder:default=true
	// +optional
	Required *bool `json:"required,omitempty"`
}

// StdioServer is an MCP server that is started as a program.
//
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') == 'Container' || !has(self.env) || !self.env.exists(e, has(e.valueSecretRef))",message="valueSecretRef is not allowed with runIn: Sandbox, because commands of the agent could read the Secret: remove runIn, or valueSecretRef"
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') != 'Container' || has(self.container)",message="container is required unless runIn is Sandbox: write container: {image: ghcr.io/acme/mcp:1}, or runIn: Sandbox"
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') == 'Container' || !has(self.container)",message="container is not allowed with runIn: Sandbox, which uses sandbox.image of the Agent: remove container"
type StdioServer struct {
	// command is the program and its arguments. It does not run in a shell.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +required
	Command []string `json:"command"`

	// runIn is the container in which the program runs: Container is its own container of the
	// pod; Sandbox is the container of the agent's commands, with their files and without
	// Secrets. Default Container.
	// +kubebuilder:validation:Enum=Container;Sandbox
	// +optional
	RunIn RunIn `json:"runIn,omitempty"`

	// container is the program's own container. Required unless runIn is Sandbox.
	// +optional
	Container *ServerContainer `json:"container,omitempty"`

	// env are environment variables of the program, at most 32.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Env []ServerVariable `json:"env,omitempty"`
}

// ServerContainer is the container of an MCP server.
type ServerContainer struct {
	// image is the image with the program. If it cannot be pulled, a Run ends with reason
	// ImagePullFailed; if it is not an image name, the Toolset is not Ready,
	// reason Invalid.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +required
	Image string `json:"image"`

	// workspace is whether the workspace is mounted in the container: ReadOnly or None. Default
	// None.
	// +kubebuilder:validation:Enum=None;ReadOnly
	// +optional
	Workspace WorkspaceAccess `json:"workspace,omitempty"`
}

// ServerVariable is an environment variable of an MCP server.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.valueSecretRef)",message="exactly one of value and valueSecretRef is required: remove the other"
type ServerVariable struct {
	// name is the name of the variable.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="must be the name of a variable: letters, digits and _, and no digit at the start"
	// +required
	Name string `json:"name"`

	// value is the value, at most 4 KiB. Values can be read by every user who may read the
	// Toolset: for a secret use valueSecretRef.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Value *string `json:"value,omitempty"`

	// valueSecretRef is the key of a Secret, in the same namespace, with the value. While the
	// Secret or the key is missing, a Run waits with reason SecretMissing.
	// +optional
	ValueSecretRef *SecretKeyRef `json:"valueSecretRef,omitempty"`
}

// HTTPServer is an MCP server with a URL.
type HTTPServer struct {
	// url is the URL of the server. The runner calls it, not the sandbox. If the server cannot
	// be reached, an attempt ends with reason ToolUnavailable, unless required is false.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/mcp"
	// +kubebuilder:validation:XValidation:rule="!self.matches('^[^/]*//[^/?#]*@')",message="must have no credential before the host: write the credential into a Secret that headers or auth name"
	// +required
	URL string `json:"url"`

	// headers are HTTP headers of every request, at most 16. Values can be read by every user
	// who may read the Toolset: for a secret use auth.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="each header may be listed once, whether in upper or lower case: remove all but one of them"
	// +optional
	Headers []Header `json:"headers,omitempty"`

	// auth is how requests authenticate. Exactly one of its fields is required. If the server
	// refuses a value, the Secret is read again. While a Secret or a key is missing, a Run
	// waits with reason SecretMissing. Default: without credentials.
	// +optional
	Auth *Auth `json:"auth,omitempty"`
}

// Offer is a part of an MCP server that becomes tools.
type Offer string

// The parts of an MCP server that can become tools.
const (
	OfferTools     Offer = "Tools"
	OfferResources Offer = "Resources"
	OfferPrompts   Offer = "Prompts"
)

// RunIn is the container in which an MCP server runs.
type RunIn string

// Where an MCP server runs.
const (
	RunInContainer RunIn = "Container"
	RunInSandbox   RunIn = "Sandbox"
)

// WorkspaceAccess is how the workspace is mounted in a container.
type WorkspaceAccess string

// What a container sees of the workspace.
const (
	WorkspaceAccessNone     WorkspaceAccess = "None"
	WorkspaceAccessReadOnly WorkspaceAccess = "ReadOnly"
)

// ToolsetStatus is the observed state of a Toolset.
type ToolsetStatus struct {
	// observedGeneration is the metadata.generation that the conditions are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready: the spec is valid. The message of an invalid one names the field.
	// For GitOps tools it also has Reconciling and Stalled.
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
