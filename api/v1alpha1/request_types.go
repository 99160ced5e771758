package v1alpha1

import (
	"k8s.io/apimachinery/pkg/runtime"
)

// Auth says how requests authenticate. Credentials are never sent to another host
// that the server redirects to. Secrets are read again when the server refuses
// their values. While a Secret or a key is missing, a Run waits with reason
// SecretMissing.
//
// +kubebuilder:validation:XValidation:rule="[has(self.bearer), has(self.header), has(self.basic), has(self.oauthClientCredentials)].exists_one(x, x)",message="auth has exactly one of bearer, header, basic and oauthClientCredentials: write bearer: {tokenSecretRef: {name: github, key: token}}"
type Auth struct {
	// bearer sends a token in the header Authorization.
	// +optional
	Bearer *BearerAuth `json:"bearer,omitempty"`

	// header sends the value of a Secret in a header of your choice.
	// +optional
	Header *HeaderAuth `json:"header,omitempty"`

	// basic sends a user name and a password.
	// +optional
	Basic *BasicAuth `json:"basic,omitempty"`

	// oauthClientCredentials gets a token from an OAuth 2.0 token endpoint with the
	// grant type client_credentials.
	// +optional
	OAuthClientCredentials *OAuthClientCredentials `json:"oauthClientCredentials,omitempty"`
}

// BearerAuth sends a token in the header Authorization.
type BearerAuth struct {
	// tokenSecretRef names the key of a Secret that holds the token.
	// +required
	TokenSecretRef SecretKeyRef `json:"tokenSecretRef"`
}

// HeaderAuth sends the value of a Secret in a header.
type HeaderAuth struct {
	// name of the header, for example X-API-Key.
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="must be the name of a header: write X-API-Key"
	// +required
	Name string `json:"name"`

	// valueSecretRef names the key of a Secret that holds the value.
	// +required
	ValueSecretRef SecretKeyRef `json:"valueSecretRef"`
}

// BasicAuth sends a user name and a password.
type BasicAuth struct {
	// secretRef names a Secret with the keys username and password, for example one
	// of type kubernetes.io/basic-auth.
	// +required
	SecretRef SecretRef `json:"secretRef"`
}

// OAuthClientCredentials gets a token with the grant type client_credentials.
type OAuthClientCredentials struct {
	// secretRef names a Secret with the keys client-id and client-secret.
	// +required
	SecretRef SecretRef `json:"secretRef"`

	// tokenURL is the token endpoint.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="isURL(self) && url(self).getScheme() in ['http', 'https'] && url(self).getHost() != ''",message="must be an http or https URL: write https://login.example.com/token"
	// +required
	TokenURL string `json:"tokenURL"`

	// scopes are requested with the token. Default: none.
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

	// auth says how requests authenticate. Default: not at all.
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

// RequestTool is a tool that sends one request. In path, query and body ${{ input.x }} is
// replaced by the value x of its arguments, escaped for its position: a value cannot become
// another part of the path, another parameter or another field.
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
