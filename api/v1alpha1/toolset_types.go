package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Toolset is tools that come from somewhere else: those of an MCP server, or
// requests to an HTTP API.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=tset,categories=deckhand
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Description",type=string,priority=1,JSONPath=`.spec.description`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
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
// +kubebuilder:validation:XValidation:rule="[has(self.stdio), has(self.http), has(self.requests)].exists_one(x, x)",message="a Toolset is one of stdio (an MCP server that is a program), http (one that is reached by URL) and requests (to an HTTP API)"
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

	// requests are tools of our own making: each is one request to an HTTP API.
	// +optional
	Requests *Requests `json:"requests,omitempty"`

	// offer is what of an MCP server becomes tools: Tools, Resources (one tool that
	// lists and one that reads) and Prompts (the same). Default: Tools.
	// +listType=set
	// +kubebuilder:validation:MaxItems=3
	// +kubebuilder:validation:items:Enum=Tools;Resources;Prompts
	// +optional
	Offer []Offer `json:"offer,omitempty"`

	// readOnly names tools of the server that change nothing: a call that a crash
	// interrupted is made again. Default: none; such a call is told to the model
	// and never made again.
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
	// +kubebuilder:validation:XValidation:rule="duration(self) > duration('0s') && duration(self) <= duration('6h')",message="must be more than 0s and at most 6h"
	// +optional
	Timeout *Duration `json:"timeout,omitempty"`

	// required is false to let a Run begin, and go on, without a server that cannot
	// be reached; the model is told. Default true: it ends with reason
	// ToolUnavailable, which is tried again.
	// +kubebuilder:default=true
	// +optional
	Required *bool `json:"required,omitempty"`
}

// StdioServer is an MCP server that is started as a program.
//
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') == 'Container' || !has(self.env) || !self.env.exists(e, has(e.secret))",message="a server with credentials runs in a container of its own: commands of the agent could read them in the sandbox; remove runIn, or the secrets"
// +kubebuilder:validation:XValidation:rule="(self.?runIn.orValue('Container') == 'Container') == has(self.image)",message="image is the image of the container of its own, which a server has unless runIn is Sandbox"
// +kubebuilder:validation:XValidation:rule="self.?runIn.orValue('Container') == 'Container' || !has(self.workspace)",message="workspace is for a container of its own: the sandbox has the files"
type StdioServer struct {
	// command is the program and its arguments.
	// +listType=atomic
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=1024
	// +required
	Command []string `json:"command"`

	// runIn is Container, one of its own, or Sandbox, beside the commands of the
	// agent, with their files and without credentials. Default Container.
	// +kubebuilder:validation:Enum=Container;Sandbox
	// +optional
	RunIn RunIn `json:"runIn,omitempty"`

	// image of the container of its own.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Image string `json:"image,omitempty"`

	// env are variables of the server.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=32
	// +optional
	Env []ServerVariable `json:"env,omitempty"`

	// workspace is ReadOnly to mount the workspace in the container, or None.
	// Default None.
	// +kubebuilder:validation:Enum=None;ReadOnly
	// +optional
	Workspace WorkspaceAccess `json:"workspace,omitempty"`
}

// ServerVariable is a variable of an MCP server.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) != has(self.secret)",message="a variable has a value or a secret, one of the two"
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

	// secret is where its value comes from. While it is missing the pod does not
	// start, reason SecretMissing.
	// +optional
	Secret *SecretKey `json:"secret,omitempty"`
}

// HTTPServer is an MCP server that is reached by URL.
type HTTPServer struct {
	// url of the server. The runner calls it, not the sandbox.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://host/mcp"
	// +required
	URL string `json:"url"`

	// headers are sent with every request. What is secret belongs to auth.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && size(self[k]) <= 1024)",message="a header has a name of at most 128 characters and a value of at most 1024"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9-]+$') && !(k.lowerAscii() in ['authorization', 'proxy-authorization', 'cookie']))",message="must be header names other than Authorization, Proxy-Authorization and Cookie: credentials belong in auth"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !self[k].matches('[\\r\\n]'))",message="a value of a header must be one line"
	// +optional
	Headers map[string]string `json:"headers,omitempty"`

	// auth is how requests show who they come from. Default: not at all.
	// +optional
	Auth *Auth `json:"auth,omitempty"`
}

// Auth is how requests show who they come from. What it sends is never sent to
// another host that a server redirects to.
//
// +kubebuilder:validation:XValidation:rule="(self.type == 'Header') == has(self.header)",message="header goes with the type Header: write header: X-API-Key"
// +kubebuilder:validation:XValidation:rule="(self.type == 'OAuthClientCredentials') == has(self.tokenURL)",message="tokenURL goes with the type OAuthClientCredentials"
// +kubebuilder:validation:XValidation:rule="!has(self.key) || self.type in ['Bearer', 'Header']",message="key is for the types Bearer and Header: Basic reads username and password, OAuthClientCredentials client-id and client-secret"
// +kubebuilder:validation:XValidation:rule="!has(self.scopes) || self.type == 'OAuthClientCredentials'",message="scopes are for the type OAuthClientCredentials"
type Auth struct {
	// type is Bearer (the key of the Secret as a bearer token), Header (as a header),
	// Basic (the keys username and password of the Secret) or OAuthClientCredentials
	// (its keys client-id and client-secret get a token from tokenURL).
	// +kubebuilder:validation:Enum=Bearer;Header;Basic;OAuthClientCredentials
	// +required
	Type AuthType `json:"type"`

	// secretName names the Secret. While it is missing the Run waits, reason
	// SecretMissing. It is read again when a server refuses what it had.
	// +required
	SecretName ObjectName `json:"secretName"`

	// key in it, for Bearer and Header. Default api-key.
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[-._a-zA-Z0-9]+$') && !self.startsWith('..')",message="must be a key of a Secret: letters, digits, -, _ and ."
	// +optional
	Key string `json:"key,omitempty"`

	// header is the name of the header.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="must be the name of a header: write X-API-Key"
	// +optional
	Header string `json:"header,omitempty"`

	// tokenURL is where a token is got.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL"
	// +optional
	TokenURL string `json:"tokenURL,omitempty"`

	// scopes are what a token is asked for.
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +optional
	Scopes []string `json:"scopes,omitempty"`
}

// Requests are tools that are requests to an HTTP API.
type Requests struct {
	// baseURL begins the URL of each.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://api.example.com/v1"
	// +required
	BaseURL string `json:"baseURL"`

	// headers are sent with every request. What is secret belongs to auth.
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && size(self[k]) <= 1024)",message="a header has a name of at most 128 characters and a value of at most 1024"
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.matches('^[A-Za-z0-9-]+$') && !(k.lowerAscii() in ['authorization', 'proxy-authorization', 'cookie']))",message="must be header names other than Authorization, Proxy-Authorization and Cookie: credentials belong in auth"
	// +kubebuilder:validation:XValidation:rule="self.all(k, !self[k].matches('[\\r\\n]'))",message="a value of a header must be one line"
	// +optional
	Headers map[string]string `json:"headers,omitempty"`

	// auth is how requests show who they come from. Default: not at all.
	// +optional
	Auth *Auth `json:"auth,omitempty"`

	// tools are the requests.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +required
	Tools []RequestTool `json:"tools"`
}

// RequestTool is a tool that is one request. In path, query and body
// ${{ input.x }} stands for the value x of its arguments, escaped as its place
// needs it: a value cannot become another part of the path, another parameter
// or another field.
type RequestTool struct {
	// name of the tool, after that of the Toolset.
	// +kubebuilder:validation:MaxLength=48
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-zA-Z0-9_-]{1,48}$')",message="must be a name that models take: at most 48 letters, digits, _ and -"
	// +required
	Name string `json:"name"`

	// description tells the model what it does and when to use it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2048
	// +required
	Description string `json:"description"`

	// method of the request. GET and HEAD change nothing, PUT and DELETE may be made
	// twice, the others once.
	// +kubebuilder:validation:Enum=GET;HEAD;POST;PUT;PATCH;DELETE
	// +required
	Method string `json:"method"`

	// path after baseURL: /issues/${{ input.number }}.
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.startsWith('/')",message="must begin with /"
	// +required
	Path string `json:"path"`

	// query are the parameters of the URL. One whose value is ${{ input.x }} alone is
	// left out where x is not given.
	// +kubebuilder:validation:MaxProperties=32
	// +kubebuilder:validation:XValidation:rule="self.all(k, size(k) <= 128 && size(self[k]) <= 1024)",message="a parameter has a name of at most 128 characters and a value of at most 1024"
	// +optional
	Query map[string]string `json:"query,omitempty"`

	// body is JSON. A string that is ${{ input.x }} alone becomes the value x,
	// whatever its type, and is left out where x is not given.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Body *runtime.RawExtension `json:"body,omitempty"`

	// input is a JSON Schema of type object: the arguments. Default: none.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +optional
	Input *runtime.RawExtension `json:"input,omitempty"`
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

// AuthType is how requests show who they come from.
type AuthType string

// How requests show who they come from.
const (
	AuthBearer                 AuthType = "Bearer"
	AuthHeader                 AuthType = "Header"
	AuthBasic                  AuthType = "Basic"
	AuthOAuthClientCredentials AuthType = "OAuthClientCredentials"
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
