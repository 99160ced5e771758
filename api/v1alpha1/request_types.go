package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

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

	// headers are sent with every request. Do not put a secret here: use auth.
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(h, self.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="each header may be listed once, in upper or lower case"
	// +optional
	Headers []Header `json:"headers,omitempty"`

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

	// input declares the arguments of the tool. Default: none.
	// +optional
	Input *Input `json:"input,omitempty"`
}

// AuthType is how requests show who they come from.
type AuthType string

// How requests show who they come from.
const (
	AuthBearer                 AuthType = "Bearer"
	AuthHeader                 AuthType = "Header"
	AuthBasic                  AuthType = "Basic"
	AuthOAuthClientCredentials AuthType = "OAuthClientCredentials" //nolint:gosec // the name of a type, no credential
)
